"""Runs a command that must not outlive its starter: `python watchdog.py PARENT_PID COMMAND...`

A separate file that imports only the standard library, because it is run as a program. The starter
holds the other end of our stdin. When it closes that end, or dies and the kernel closes it, the
command is terminated. A process that the starter forked may keep a copy of that end open, so we
also check that our parent is still the starter. If this watchdog itself is killed, Linux kills the
command (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1
_POLL_SECONDS = 0.2
_GRACE_SECONDS = 5.0


def die_with_parent() -> None:
    """Have Linux kill this process when its parent ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> int:
    starter, command = int(sys.argv[1]), sys.argv[2:]
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=die_with_parent if sys.platform == "linux" else None,
    )
    # The starter reads the process id from this line.
    print(f"watchdog: pid {child.pid}", flush=True)
    while child.poll() is None:
        readable, _, _ = select.select([0], [], [], _POLL_SECONDS)
        if (readable and not os.read(0, 1)) or os.getppid() != starter:
            child.terminate()
            try:
                child.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
    return child.returncode


if __name__ == "__main__":
    # Ctrl-C reaches the starter, which decides when the command ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(main())
