"""Findings of checks, the report of all of them, and the errors of trails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opfl_chain.chain.contracts.contract import Event
from opfl_chain.trail.canonical import readable
from opfl_chain.trail.record import Entry, Place

START: Place = (-1, 0)
"""Before all blocks: the place of findings about values fixed before the first event."""
END: Place = (1 << 64, 0)
"""After all blocks: the place of findings about the current state."""
_LONGEST = 160


class TrailError(Exception):
    """The root error of this package."""


class NoSuchJob(TrailError):
    def __init__(self, job: int, jobs: str, count: int) -> None:
        known = f"it holds jobs 1 to {count}" if count else "it holds no jobs yet"
        super().__init__(f"job {job} is not in the contract Jobs at {jobs}: {known}")


class ChainUnsteady(TrailError):
    """A chain that was reorganised during every attempt to read it."""

    def __init__(self, url: str, attempts: int) -> None:
        super().__init__(
            f"the chain at {url} was reorganised during all {attempts} attempts to read it. Try"
            " again when it is stable, or use a node that is in sync"
        )


class ExportInvalid(TrailError):
    """A folder without a readable export."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} {reason}. `opfl trail export` writes such a folder")


class AnswersUnreadable(TrailError):
    """A file without readable answers."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} {reason}. Members write answers.jsonl into their state folders")


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
    """Make a finding about an event; it holds if both values are equal, or as `holds` says."""
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
    """Make a finding about the state at the trail's last block."""
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
    """The number of facts per check, and the failures in the order of the chain."""

    facts: Mapping[str, int]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...] = ()
    """Limits of the report: facts that could not be checked, and why."""

    @property
    def holds(self) -> bool:
        return not self.failures

    @property
    def first_failure(self) -> Failure | None:
        return self.failures[0] if self.failures else None

    def with_report(self, other: Report) -> Report:
        """Merge both reports. At the same place, failures of this report come first."""
        failures = sorted(self.failures + other.failures, key=lambda f: f.finding.place)
        facts, notes = {**self.facts, **other.facts}, self.notes + other.notes
        return Report(facts, tuple(failures), notes)

    @property
    def report(self) -> dict[str, Any]:
        """The report as `--json` writes it."""
        return {
            "holds": self.holds,
            "facts": dict(self.facts),
            "failures": len(self.failures),
            "first_failure": self.first_failure.report if self.first_failure else None,
            "notes": list(self.notes),
        }


def _short(value: Any) -> str:
    text = str(readable(value))
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
