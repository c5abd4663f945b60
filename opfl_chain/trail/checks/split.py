"""What is taken is split between burn, treasury and the majority, to the wei."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings.events import Distributed
from opfl_chain.protocol.identifiers import Address, job_and_number
from opfl_chain.protocol.slashing import split_slash
from opfl_chain.trail.history import Distribution, History
from opfl_chain.trail.report import Finding, at


def check(history: History) -> Iterator[Finding]:
    explained = set()
    for distribution in history.distributions:
        if distribution.distributed is not None:
            explained.add(distribution.distributed.place)
        yield from _distribution(history, distribution)
    for entry in history.trail.of(Distributed):
        yield at(
            entry,
            "what is distributed was taken just before",
            "SlashExecuted or MemberPenalised in the same transaction",
            None,
            holds=entry.place in explained,
        )


def _distribution(history: History, distribution: Distribution) -> Iterator[Finding]:
    cause, split = distribution.cause, history.terms.split
    paid = recipients(history, distribution)
    if not paid:
        yield at(cause, "members of the majority are paid", "at least 1", 0)
        return
    parts = split_slash(cause.event.amount, split.burn, split.treasury, len(paid))
    found = distribution.distributed
    expected = Distributed(history.trail.job, parts.burn, parts.treasury, parts.committee)
    yield at(
        found or cause,
        "wei that are burned, for the treasury and for the committee",
        expected,
        found.event if found is not None else None,
    )
    credits = [(history.terms.treasury, parts.treasury)]
    credits += [(member, parts.each_member) for member in paid]
    yield at(
        distribution.credited[0] if distribution.credited else cause,
        "wei that each is credited",
        [(account, amount) for account, amount in credits if amount],
        [(entry.event.account, entry.event.amount) for entry in distribution.credited],
        who=cause.who,
    )


def recipients(history: History, distribution: Distribution) -> list[Address]:
    """The majority as it was then, in the order of the committee, without the one who pays."""
    cause = distribution.cause
    round_ = history.rounds[job_and_number(cause.event.round)[1]]
    return [
        member
        for member in history.terms.members
        if member != distribution.payer
        and member in round_.majority
        and round_.majority[member].place < cause.place
    ]
