"""What checks find, and the report of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opfl_chain.chain.contract import Event
from opfl_chain.trail.canonical import readable
from opfl_chain.trail.record import Entry, Place

START: Place = (-1, 0)
"""Before all blocks: findings about what is fixed before the first event."""

END: Place = (1 << 64, 0)
"""After all blocks: findings about how things stand now."""

_LONGEST = 160


@dataclass(frozen=True)
class Finding:
    """One fact that was recomputed, and whether the chain agrees."""

    place: Place
    fact: str
    holds: bool
    expected: Any
    found: Any
    round: int | None = None
    who: str | None = None


def at(
    entry: Entry[Event],
    fact: str,
    expected: Any,
    found: Any,
    *,
    holds: bool | None = None,
    who: str | None = None,
) -> Finding:
    """A finding about an event: it holds where both values are the same, or as `holds` says."""
    return Finding(
        entry.place,
        fact,
        expected == found if holds is None else holds,
        expected,
        found,
        entry.round,
        who or entry.who,
    )


def now(
    fact: str, expected: Any, found: Any, *, round_: int | None = None, who: str | None = None
) -> Finding:
    """A finding about how things stand at the trail's last block."""
    return Finding(END, fact, expected == found, expected, found, round_, who)


@dataclass(frozen=True)
class Failure:
    """A finding that does not hold, and the check that made it."""

    check: str
    finding: Finding

    def __str__(self) -> str:
        finding = self.finding
        where = [f"round {finding.round}"] if finding.round is not None else []
        if START < finding.place < END:
            where.append(f"block {finding.place[0]}, log {finding.place[1]}")
        if finding.who is not None:
            where.append(finding.who)
        return (
            f"{self.check}: {finding.fact}{' (' if where else ''}{', '.join(where)}"
            f"{')' if where else ''}: expected {_short(finding.expected)}, found"
            f" {_short(finding.found)}"
        )

    @property
    def report(self) -> dict[str, Any]:
        finding = self.finding
        on_chain = START < finding.place < END
        return {
            "check": self.check,
            "fact": finding.fact,
            "round": finding.round,
            "who": finding.who,
            "block": finding.place[0] if on_chain else None,
            "log_index": finding.place[1] if on_chain else None,
            "expected": readable(finding.expected),
            "found": readable(finding.found),
        }


@dataclass(frozen=True)
class Report:
    """How many facts each check covered, and what does not hold, in the order of the chain."""

    facts: Mapping[str, int]
    failures: tuple[Failure, ...]

    @property
    def holds(self) -> bool:
        return not self.failures

    @property
    def first_failure(self) -> Failure | None:
        return self.failures[0] if self.failures else None

    def with_report(self, other: Report) -> Report:
        """Both reports as one. Of failures at one place, those of the first come first."""
        failures = sorted(self.failures + other.failures, key=lambda f: f.finding.place)
        return Report({**self.facts, **other.facts}, tuple(failures))

    @property
    def report(self) -> dict[str, Any]:
        """The report as `--json` writes it."""
        return {
            "holds": self.holds,
            "facts": dict(self.facts),
            "failures": len(self.failures),
            "first_failure": self.first_failure.report if self.first_failure else None,
        }


def _short(value: Any) -> str:
    text = str(readable(value))
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
