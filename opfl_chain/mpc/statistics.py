"""What a run cost, for the member that measured it."""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    """One kind of operation in a run, by SPU's name of it."""

    name: str
    count: int
    seconds: float
    sent_bytes: int
    sent_messages: int


@dataclass(frozen=True)
class RunStatistics:
    """Bytes and messages are what this member sent, payload only.

    Add the members' up before you compare: SPU draws lots who sends what in a truncation.
    """

    program: str
    seconds: float
    sent_bytes: int
    sent_messages: int
    peak_memory_bytes: int
    """The peak of the process during the run, not only of what the run added."""
    operations: tuple[OperationCost, ...] = ()
    """The most expensive first."""


def total(statistics: Sequence[RunStatistics]) -> RunStatistics:
    """What a run cost all members together: the time of the slowest, and all that they sent."""
    operations: dict[str, OperationCost] = {}
    for each in statistics:
        for cost in each.operations:
            operations[cost.name] = _together(operations.get(cost.name), cost)
    return RunStatistics(
        statistics[0].program,
        max(each.seconds for each in statistics),
        sum(each.sent_bytes for each in statistics),
        sum(each.sent_messages for each in statistics),
        max(each.peak_memory_bytes for each in statistics),
        _dearest_first(operations),
    )


def parse_profile(log: str) -> tuple[int, int, tuple[OperationCost, ...]]:
    """Bytes and messages sent, and the cost of each operation, from what SPU logs after a run.

    Where several members write to one log, what they sent is added up.
    """
    totals = _LINK.findall(log)
    operations: dict[str, OperationCost] = {}
    for found in _OPERATION.finditer(log):
        cost = OperationCost(
            found["name"], int(found["count"]), float(found["time"]), int(found[4]), int(found[6])
        )
        operations[cost.name] = _together(operations.get(cost.name), cost)
    return (
        sum(int(sent_bytes) for sent_bytes, _, _, _ in totals),
        sum(int(messages) for _, _, messages, _ in totals),
        _dearest_first(operations),
    )


def _together(one: OperationCost | None, other: OperationCost) -> OperationCost:
    """The cost of an operation to two members, who do it at the same time."""
    if one is None:
        return other
    return OperationCost(
        one.name,
        max(one.count, other.count),
        max(one.seconds, other.seconds),
        one.sent_bytes + other.sent_bytes,
        one.sent_messages + other.sent_messages,
    )


def _dearest_first(operations: dict[str, OperationCost]) -> tuple[OperationCost, ...]:
    return tuple(sorted(operations.values(), key=lambda each: -each.seconds))


def reset_peak_memory() -> None:
    """Start a new measurement of the process's peak memory, where Linux allows it."""
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
