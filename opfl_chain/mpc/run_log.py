"""SPU's log, kept off the terminal and read for what it says about traffic.

SPU counts what a link carries but tells only its log, of which a process has one.
"""

from __future__ import annotations

import os
import tempfile
import threading
from functools import cache
from pathlib import Path

from opfl_chain.mpc.native import libspu


class RunLog:
    """The log of this process. Use `run_log()`."""

    def __init__(self) -> None:
        descriptor, name = tempfile.mkstemp(prefix="opfl-spu-", suffix=".log")
        self._file = os.fdopen(descriptor, "r+", errors="replace")
        options = libspu.logging.LogOptions()
        options.enable_console_logger = False
        options.system_log_path = name
        libspu.logging.setup_logging(options)
        Path(name).unlink()  # SPU has it open, and so have we: it goes with the process

    def begin(self) -> None:
        """A run begins."""
        self._file.truncate(0)  # SPU appends, so it goes on at the new end

    def end(self) -> str:
        """What was logged since the run began."""
        self._file.seek(0)
        return self._file.read()

    def fail(self) -> None:
        """The run failed."""


@cache
def run_log() -> RunLog:
    return RunLog()


class SharedRunLog(RunLog):
    """The log of a process with several members in threads, who begin and end a run together.

    Nothing in the log tells them apart, so one of them gets all of it.
    """

    def __init__(self, members: int, seconds: float) -> None:
        self._log = run_log()
        self._together = threading.Barrier(members, timeout=seconds)

    def begin(self) -> None:
        if self._first():
            self._log.begin()
        self._first()

    def end(self) -> str:
        text = self._log.end() if self._first() else ""
        self._first()
        return text

    def fail(self) -> None:
        self._together.abort()

    def _first(self) -> bool:
        try:
            return self._together.wait() == 0
        except threading.BrokenBarrierError:
            return False  # another member failed, and so will this one
