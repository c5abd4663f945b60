"""The checks of a trail: each is a pure function from the history to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from opfl_chain.chain.bindings.events import JobCreated
from opfl_chain.trail.checks.audits import check_audits
from opfl_chain.trail.checks.balances import check_balances
from opfl_chain.trail.checks.beacon import check_beacon, check_group_keys
from opfl_chain.trail.checks.documents import check_documents
from opfl_chain.trail.checks.enrolment import check_enrolment, check_status
from opfl_chain.trail.checks.openings import check_openings
from opfl_chain.trail.checks.order import check_order
from opfl_chain.trail.checks.penalties import check_penalties, check_split
from opfl_chain.trail.checks.rewards import check_rewards
from opfl_chain.trail.checks.rolls import check_rolls
from opfl_chain.trail.checks.schedule import check_schedule
from opfl_chain.trail.checks.seats import check_seats
from opfl_chain.trail.checks.statements import check_statements
from opfl_chain.trail.checks.verdicts import check_passes, check_verdicts
from opfl_chain.trail.history import History
from opfl_chain.trail.limits import limits_of
from opfl_chain.trail.record import Trail
from opfl_chain.trail.report import START, Failure, Finding, Report

Check = Callable[[History], Iterator[Finding]]

CHECKS: Final[Mapping[str, Check]] = {
    "order of events": check_order,
    "schedule": check_schedule,
    "terms and documents": check_documents,
    "enrolment": check_enrolment,
    "seats": check_seats,
    "group keys": check_group_keys,
    "openings": check_openings,
    "rolls": check_rolls,
    "beacon": check_beacon,
    "verdicts": check_verdicts,
    "passes": check_passes,
    "audits": check_audits,
    "client status": check_status,
    "member penalties": check_penalties,
    "split of penalties": check_split,
    "rewards": check_rewards,
    "balances": check_balances,
    "signed statements": check_statements,
}
"""The checks by name. At the same place in the chain, failures of earlier checks come first."""


def check_trail(trail: Trail) -> Report:
    """Recompute everything that the trail states."""
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
    # Stable sort: at the same place, failures keep the order of the checks.
    failures.sort(key=lambda failure: failure.finding.place)
    return Report(facts, tuple(failures), tuple(limits_of(history)))
