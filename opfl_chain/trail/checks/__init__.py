"""What is recomputed: each check a pure function from the history to findings."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from opfl_chain.trail.checks import (
    accumulator,
    audits,
    balances,
    beacon,
    commitments,
    documents,
    enrolment,
    group_key,
    model,
    order,
    penalties,
    schedule,
    slashes,
    split,
    statements,
    status,
    verdicts,
)
from opfl_chain.trail.history import History
from opfl_chain.trail.report import Finding

Check = Callable[[History], Iterator[Finding]]

CHECKS: Final[Mapping[str, Check]] = {
    "order of events": order.check,
    "schedule": schedule.check,
    "terms and documents": documents.check,
    "enrolment": enrolment.check,
    "client status": status.check,
    "group key": group_key.check,
    "commitments": commitments.check,
    "accumulator": accumulator.check,
    "beacon": beacon.check,
    "verdicts": verdicts.check,
    "audited set": audits.check,
    "slashes": slashes.check,
    "member penalties": penalties.check,
    "split of slashes": split.check,
    "balances": balances.check,
    "model hashes": model.check,
    "signed statements": statements.check,
}
"""By name. Of failures at one place in the chain, those of an earlier check are named first."""
