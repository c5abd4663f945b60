"""A process that has loaded a program, and forks a copy of itself for every start of it.

Loading takes seconds of processor time; a copy has everything loaded at once and shares its memory.
The starter sends one request per copy over a socket: arguments, and the open log file. It gets a
file descriptor of the copy's process, which never names another process, as a process id might.

Copies end with their template, and the template ends them when its starter ends. Linux only.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from opfl_chain.system.child import ChildFailed
from opfl_chain.system.closing import Closing
from opfl_chain.system.watchdog import die_with_parent

_POLL_SECONDS = 0.2
_GRACE_SECONDS = 5.0
_STOP_SECONDS = 10.0
_MOST_BYTES = 1 << 16
"""The size of a request: a path and a few words."""


def can_fork() -> bool:
    """Return whether this system has what templates need."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open")


class Copy:
    """A copy of a template. It ends on `close`, or with its template."""

    def __init__(self, pid: int, handle: int, log: Path) -> None:
        self.pid = pid
        self.log = log
        self._handle = handle
        self._ended = False

    @property
    def alive(self) -> bool:
        return not self._has_ended(0)

    def close(self) -> None:
        """Ask the process to end, and kill it if it does not."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self._has_ended(0):
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._handle, number)
                self._has_ended(_STOP_SECONDS)

    def _has_ended(self, seconds: float) -> bool:
        if not self._ended:
            ending = select.poll()  # not `select`, which takes no descriptor above 1023
            ending.register(self._handle, select.POLLIN)
            if ending.poll(1000 * seconds):
                self._ended = True
                os.close(self._handle)
        return self._ended


class Template(Closing):
    """Starts loading on construction, and does not wait for it.

    `program` is `module:function`, which takes its arguments from `sys.argv`. `modules` are loaded
    beforehand; of `module:function`, the function is called as well.
    """

    def __init__(
        self, program: str, modules: Sequence[str], log: Path, env: Mapping[str, str]
    ) -> None:
        self._log = log
        self._stream, theirs = socket.socketpair()
        log.parent.mkdir(parents=True, exist_ok=True)
        with theirs, log.open("wb") as output:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", __name__, str(theirs.fileno()), str(os.getpid())),
                    *(program, *modules),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **env},
                start_new_session=True,
            )

    def start(self, arguments: Sequence[str], log: Path) -> Copy:
        """Start the program with these arguments; its output goes to `log`."""
        try:
            with log.open("wb") as output:
                request = json.dumps(list(arguments)).encode()
                socket.send_fds(self._stream, [request], [output.fileno()])
            answer, handles, _, _ = socket.recv_fds(self._stream, _MOST_BYTES, 1)
        except ConnectionError:
            answer, handles = b"", []
        if not handles:
            tail = self._log.read_text(errors="replace")[-2000:]
            raise ChildFailed(f"the template of {arguments[0]} ended. The end of its log:\n{tail}")
        return Copy(int(answer), handles[0], log)

    def close(self) -> None:
        """End the template, and with it all copies that still run."""
        self._stream.close()
        self._process.wait()


# --- in the template's process


def serve(stream: socket.socket, starter: int) -> list[str] | None:
    """Fork copies until the starter ends. Return a copy's arguments in the copy, else None."""
    copies: set[int] = set()
    template = os.getpid()
    while os.getppid() == starter:
        copies -= _ended(copies)
        if not select.select([stream], [], [], _POLL_SECONDS)[0]:
            continue
        request, logs, _, _ = socket.recv_fds(stream, _MOST_BYTES, 1)
        if not logs:
            break
        pid = os.fork()
        if not pid:
            _become_copy(stream, template, logs[0])
            return list(json.loads(request))
        copies.add(pid)
        os.close(logs[0])
        handle = os.pidfd_open(pid)
        socket.send_fds(stream, [str(pid).encode()], [handle])
        os.close(handle)
    _end(copies)
    return None


def _become_copy(stream: socket.socket, template: int, log: int) -> None:
    die_with_parent()
    if os.getppid() != template:  # it ended before that
        os._exit(1)
    os.setsid()
    stream.close()
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())
    os.close(log)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _run_copy(program: Callable[[], object]) -> NoReturn:
    """Run the program and end it as Python does, but skip the exit handlers of C libraries.

    Such a handler may take a lock that a thread of the template held at the fork, and nobody in
    the copy would ever release it.
    """
    status = 1
    try:
        program()
        status = 0
    except SystemExit as ending:
        status = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
        if isinstance(ending.code, str):
            print(ending.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - it is shown, and the process ends
        traceback.print_exc()
    # As multiprocessing ends its forks, and atexit functions as well.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _ended(copies: set[int]) -> set[int]:
    return {pid for pid in copies if os.waitpid(pid, os.WNOHANG)[0]}


def _end(copies: set[int]) -> None:
    until = time.monotonic() + _GRACE_SECONDS
    for pid in copies:
        os.kill(pid, signal.SIGTERM)
    while (copies := copies - _ended(copies)) and time.monotonic() < until:
        time.sleep(_POLL_SECONDS / 10)
    # The kernel kills those that are left when this process ends.


def main() -> None:
    descriptor, starter, program, *modules = sys.argv[1:]
    # Ctrl-C reaches the starter, which decides when its processes end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    module, _, name = program.partition(":")
    import_module(module)
    for each in modules:
        place, _, prepare = each.partition(":")
        loaded = import_module(place)
        if prepare:
            getattr(loaded, prepare)()
    gc.collect()
    gc.freeze()  # a collection in a copy would write to, and so copy, all shared memory
    arguments = serve(socket.socket(fileno=int(descriptor)), int(starter))
    if arguments is not None:
        sys.argv = [module, *arguments]
        _run_copy(getattr(sys.modules[module], name))


if __name__ == "__main__":
    main()
