"""Cost of a run, as measured by one member."""

from __future__ import annotations

import atexit
import os
import re
import resource
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from opfl_chain.mpc.session.libspu import libspu

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"

_NUMBERS = r"send bytes (\d+),? recv bytes (\d+), send actions (\d+), recv actions (\d+)"
_LINK = re.compile(rf"Link details: total {_NUMBERS}")
_OPERATION = re.compile(
    rf"- (?P<name>[\w.]+), executed (?P<count>\d+) times, duration (?P<time>[\d.e+-]+)s, {_NUMBERS}"
)


@dataclass(frozen=True)
class OperationCost:
    """Cost of one kind of operation in a run, by SPU's name."""

    name: str
    count: int
    seconds: float
    sent_bytes: int
    sent_messages: int


@dataclass(frozen=True)
class RunStatistics:
    """Cost of a run; bytes (payload only) and messages are those that this member sent.

    Compare sums over all members: SPU chooses at random who sends what in a truncation.
    """

    program: str
    seconds: float
    sent_bytes: int
    sent_messages: int
    peak_memory_bytes: int
    """Peak of the whole process during the run, not only what the run added."""
    operations: tuple[OperationCost, ...] = ()
    """The most expensive first."""


def total(statistics: Sequence[RunStatistics]) -> RunStatistics:
    """Return the cost of a run to all members: the slowest's time, and the sum of the traffic."""
    operations: dict[str, OperationCost] = {}
    for each in statistics:
        for cost in each.operations:
            operations[cost.name] = _combined(operations.get(cost.name), cost)
    return RunStatistics(
        statistics[0].program,
        max(each.seconds for each in statistics),
        sum(each.sent_bytes for each in statistics),
        sum(each.sent_messages for each in statistics),
        max(each.peak_memory_bytes for each in statistics),
        _most_expensive_first(operations),
    )


def parse_profile(log: str) -> tuple[int, int, tuple[OperationCost, ...]]:
    """Parse SPU's log of a run: bytes and messages sent, and the cost of each operation.

    If several members write to one log, their traffic is added up.
    """
    totals = _LINK.findall(log)
    operations: dict[str, OperationCost] = {}
    for found in _OPERATION.finditer(log):
        cost = OperationCost(
            found["name"], int(found["count"]), float(found["time"]), int(found[4]), int(found[6])
        )
        operations[cost.name] = _combined(operations.get(cost.name), cost)
    return (
        sum(int(sent_bytes) for sent_bytes, _, _, _ in totals),
        sum(int(messages) for _, _, messages, _ in totals),
        _most_expensive_first(operations),
    )


def _combined(one: OperationCost | None, other: OperationCost) -> OperationCost:
    """Return the cost of an operation that two members run at the same time."""
    if one is None:
        return other
    return OperationCost(
        one.name,
        max(one.count, other.count),
        max(one.seconds, other.seconds),
        one.sent_bytes + other.sent_bytes,
        one.sent_messages + other.sent_messages,
    )


def _most_expensive_first(operations: dict[str, OperationCost]) -> tuple[OperationCost, ...]:
    return tuple(sorted(operations.values(), key=lambda each: -each.seconds))


def reset_peak_memory() -> None:
    """Reset the measurement of the process's peak memory, if Linux allows it."""
    try:
        _CLEAR.write_text(_RESET_PEAK)
    except OSError:
        return  # the peak since the process began is reported instead


def peak_memory_bytes() -> int:
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())
    except OSError:
        found = None
    if found:
        return int(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class RunLog:
    """The log of this process. Use `run_log()`."""

    def __init__(self) -> None:
        descriptor, name = tempfile.mkstemp(prefix="opfl-spu-", suffix=".log")
        self._file = os.fdopen(descriptor, "r+", errors="replace")
        atexit.register(self._file.close)
        options = libspu.logging.LogOptions()
        options.enable_console_logger = False
        options.system_log_path = name
        libspu.logging.setup_logging(options)
        Path(name).unlink()  # SPU and we keep it open until the process ends

    def begin(self) -> None:
        """Start a run: empty the log."""
        self._file.truncate(0)  # SPU appends, so it continues at the new end

    def end(self) -> str:
        """Return the log since the run began."""
        self._file.seek(0)
        return self._file.read()

    def fail(self) -> None:
        """Report that the run failed."""


@cache
def run_log() -> RunLog:
    return RunLog()


class SharedRunLog(RunLog):
    """The log of a process with several members in threads, which begin and end runs together.

    The log does not tell members apart, so one of them gets all of it.
    """

    def __init__(self, members: int, seconds: float) -> None:
        self._log = run_log()
        self._barrier = threading.Barrier(members, timeout=seconds)

    def begin(self) -> None:
        if self._first():
            self._log.begin()
        self._first()

    def end(self) -> str:
        text = self._log.end() if self._first() else ""
        self._first()
        return text

    def fail(self) -> None:
        self._barrier.abort()

    def _first(self) -> bool:
        try:
            return self._barrier.wait() == 0
        except threading.BrokenBarrierError:
            return False  # another member failed, and so will this one
