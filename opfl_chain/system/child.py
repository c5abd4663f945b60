"""A server process that ends with this process and logs to a file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_WATCHDOG = Path(__file__).with_name("watchdog.py")
_TAIL_LINES = 20
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0


class ChildFailed(Exception):
    """A child process ended, or was not ready in time."""


class Child:
    """Starts on construction; stops on `close` or when this process ends, even by SIGKILL."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        failure: type[Exception] = ChildFailed,
    ) -> None:
        self._failure = failure
        self.log = log
        self._name = Path(command[0]).name
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", _WATCHDOG, str(os.getpid()), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                # Ctrl-C in a terminal goes to the whole group; the server ends after us instead.
                start_new_session=True,
            )
        self.pid = int(self.await_line(r"watchdog: pid (\d+)", _START_SECONDS))

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def await_line(self, pattern: str, seconds: float) -> str:
        """Wait for a log line that matches the pattern and return the first group."""
        deadline = time.monotonic() + seconds
        try:
            while True:
                ended = not self.alive
                if found := re.search(pattern, self.log.read_text(errors="replace")):
                    return found[1]
                if ended:
                    raise self.failure(f"ended with code {self._process.returncode}")
                if time.monotonic() > deadline:
                    raise self.failure(f"was not ready after {seconds:g} s")
                time.sleep(0.02)
        except BaseException:  # Ctrl-C during start-up must not orphan the server either
            self.close()
            raise

    def failure(self, what: str) -> Exception:
        lines = self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        tail = "\n  ".join(lines) or "(empty)"
        return self._failure(f"{self._name} {what}. The end of {self.log}:\n  {tail}")

    def close(self) -> None:
        """Ask the server to end, and kill it if it does not."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
