"""What every client had locked in the course of a job, for a chart."""

from __future__ import annotations

from collections.abc import Mapping

from opfl_chain.chain.bindings.events import Captured, Locked, Released
from opfl_chain.chain.bindings.types import Role
from opfl_chain.demo.charts import Line, Point
from opfl_chain.demo.result import DemoResult
from opfl_chain.localnet.plan import ETHER


def deposit_lines(result: DemoResult) -> list[Line]:
    """Clients whose deposits went the same way share a line."""
    cheats = {client.name: client.cheat for client in result.clients}
    same: dict[tuple[Point, ...], list[str]] = {}
    for name, points in _courses(result).items():
        same.setdefault(tuple(points), []).append(name)
    return [
        Line(
            _label(names, cheats),
            points,
            "bad" if points[-1][1] < points[0][1] else "good",
        )
        for points, names in same.items()
    ]


def _label(names: list[str], cheats: Mapping[str, str | None]) -> str:
    if len(names) == 1:
        return f"{names[0]} ({cheats[names[0]] or 'honest'})"
    kinds = {cheats[name] or "honest" for name in names}
    return f"{len(names)} clients ({', '.join(sorted(kinds))})"


def _courses(result: DemoResult) -> dict[str, list[Point]]:
    """Deposits in ETH by round, with a corner at every change."""
    outcome = result.outcome
    rounds = outcome.history.rounds
    opened = [r.opened.block if r.opened else 0 for r in rounds.values()]
    courses: dict[str, list[Point]] = {client.name: [] for client in result.clients}
    held = dict.fromkeys(courses, 0)
    for entry in outcome.trail.entries:
        event = entry.event
        if not isinstance(event, Locked | Captured | Released) or event.role is not Role.CLIENT:
            continue
        name, at = outcome.names[event.owner], _when(entry.block, opened)
        if courses[name]:
            courses[name].append((at, held[name] / ETHER))
        held[name] += -event.amount if isinstance(event, Captured) else event.amount
        courses[name].append((at, held[name] / ETHER))
    for name, points in courses.items():
        points.append((float(len(opened)), held[name] / ETHER))
    return courses


def _when(block: int, opened: list[int]) -> float:
    """Where a block lies among the rounds: 2.5 is the middle of round 2."""
    for number, first in enumerate(opened):
        last = opened[number + 1] if number + 1 < len(opened) else None
        if block < first:
            return float(number)
        if last is not None and block < last:
            return number + (block - first) / (last - first)
    return float(len(opened))
