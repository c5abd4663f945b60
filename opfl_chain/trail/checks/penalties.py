"""Checks that members pay once for each fault, and how all that is taken is split."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings.events import Captured, Distributed, MemberPenalised
from opfl_chain.chain.bindings.types import JobTerms, MemberFault, Role
from opfl_chain.protocol.economics import BASIS_POINTS, split_penalty
from opfl_chain.protocol.identifiers import Address, job_and_number
from opfl_chain.trail.checks.audits import stakes_at_capture
from opfl_chain.trail.history import Distribution, History, RoundHistory
from opfl_chain.trail.record import Entry
from opfl_chain.trail.report import Finding, at

SHOWN_BY_SIGNATURES = (MemberFault.ABSENCE, MemberFault.FALSEHOOD, MemberFault.EQUIVOCATION)
"""Faults that the chain does not show: the check of signed statements looks at them."""


def check_penalties(history: History) -> Iterator[Finding]:
    stakes = stakes_at_capture(history, Role.MEMBER)
    for round_ in history.rounds.values():
        seen: set[tuple[str, MemberFault]] = set()
        for entry in round_.of(MemberPenalised):
            event = entry.event
            again = (event.member, event.fault) in seen
            yield at(entry, "a member pays once for a fault", False, again)
            seen.add((event.member, event.fault))
            if event.fault in SHOWN_BY_SIGNATURES:
                staked = history.has_joined(event.member, entry.place)
                yield at(entry, "who pays is of the roster and has staked", True, staked)
            else:
                shows = event.member in round_.seats and _shows(round_, entry)
                yield at(entry, f"the fault shows: {event.fault.name.lower()}", True, shows)
            captured = history.before(entry, Captured)
            stake = stakes.get(captured.place) if captured is not None else None
            penalty = penalty_for(history.terms, event.fault)
            amount = min(penalty, max(stake, 0)) if stake is not None else "Captured before"
            yield at(entry, "wei of the penalty, at most the stake", amount, event.amount)
            yield at(
                entry,
                "the stake that is captured is the member's",
                (Role.MEMBER, event.member, event.amount),
                (captured.event.role, captured.event.owner, captured.event.amount)
                if captured is not None
                else None,
            )


def _shows(round_: RoundHistory, entry: Entry[MemberPenalised]) -> bool:
    member, schedule, decided = entry.event.member, round_.schedule, round_.decided
    if schedule is None or round_.roll is None:
        return False
    if entry.event.fault is MemberFault.WITHHELD:
        late = entry.block > schedule.beacon
        return late and round_.beacon is None and member not in round_.partials
    if decided is None or decided.place > entry.place:
        return False
    attested = round_.attested.get(member)
    before = attested is not None and attested.place < entry.place
    if entry.event.fault is MemberFault.DISSENT:
        return before and member not in round_.majority
    return not before and entry.block > schedule.attest


def penalty_for(terms: JobTerms, fault: MemberFault) -> int:
    return {
        MemberFault.SILENCE: terms.penalties.silence,
        MemberFault.DISSENT: terms.penalties.dissent,
        MemberFault.ABSENCE: terms.penalties.absence,
        MemberFault.WITHHELD: terms.penalties.withheld,
        MemberFault.FALSEHOOD: terms.member_stake,
        MemberFault.EQUIVOCATION: terms.member_stake,
    }[fault]


def check_split(history: History) -> Iterator[Finding]:
    explained = set()
    for distribution in history.distributions:
        if distribution.distributed is not None:
            explained.add(distribution.distributed.place)
        yield from _distribution(history, distribution)
    for entry in history.trail.of(Distributed):
        yield at(
            entry,
            "what is distributed was taken just before",
            "ClientCharged or MemberPenalised in the same transaction",
            None,
            holds=entry.place in explained,
        )


def _distribution(history: History, distribution: Distribution) -> Iterator[Finding]:
    """Members are compensated first; of the rest the treasury has its part, and the rest burns."""
    cause, terms = distribution.cause, history.terms
    paid = compensated(history, distribution)
    share = min(terms.treasury_share, BASIS_POINTS)
    split = split_penalty(cause.event.amount, len(paid), terms.pay.member, share)
    credits = [*zip(paid, split.paid, strict=True), (terms.treasury, split.treasury)]
    found = distribution.distributed
    expected = Distributed(history.trail.job, split.burnt, split.treasury, sum(split.paid))
    yield at(
        found or cause,
        "wei that are burned, for the treasury and for members",
        expected,
        found.event if found is not None else None,
    )
    yield at(
        distribution.credited[0] if distribution.credited else cause,
        "wei that each is credited",
        [(account, amount) for account, amount in credits if amount],
        [(entry.event.account, entry.event.amount) for entry in distribution.credited],
        who=cause.who,
    )


def compensated(history: History, distribution: Distribution) -> list[Address]:
    """Return who is paid from a member's penalty: the other seats of the round, in their order."""
    if distribution.payer is None:
        return []
    round_ = history.rounds[job_and_number(distribution.cause.event.round)[1]]
    return [member for member in round_.seats if member != distribution.payer]
