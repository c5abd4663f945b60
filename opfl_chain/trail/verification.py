"""All checks over a trail."""

from __future__ import annotations

from opfl_chain.chain.bindings.events import JobCreated
from opfl_chain.trail.checks import CHECKS
from opfl_chain.trail.history import History
from opfl_chain.trail.record import Trail
from opfl_chain.trail.report import START, Failure, Finding, Report


def check_trail(trail: Trail) -> Report:
    """Recompute everything that the trail claims."""
    created = next(trail.of(JobCreated), None)
    if created is None:
        missing = Finding(START, "the job was created", False, "JobCreated", None)
        return Report({"order of events": 1}, (Failure("order of events", missing),))
    history = History(trail, created)
    facts: dict[str, int] = {}
    failures: list[Failure] = []
    for name, check in CHECKS.items():
        facts[name] = 0
        for finding in check(history):
            facts[name] += 1
            if not finding.holds:
                failures.append(Failure(name, finding))
    # Stable: at one place, the order of the checks stays.
    failures.sort(key=lambda failure: failure.finding.place)
    return Report(facts, tuple(failures))
