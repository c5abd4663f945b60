"""Checks that members pay once for each fault on chain, and how all payments are split."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings.events import Captured, Distributed, MemberPenalised
from opfl_chain.chain.bindings.types import MemberFault, Penalties, Role
from opfl_chain.protocol.economics import slash_amount, split_slash
from opfl_chain.protocol.identifiers import Address, job_and_number
from opfl_chain.trail.checks.slashes import deposits_at_capture
from opfl_chain.trail.history import Distribution, History, RoundHistory
from opfl_chain.trail.record import Entry
from opfl_chain.trail.report import Finding, at


def check_penalties(history: History) -> Iterator[Finding]:
    stakes = deposits_at_capture(history, Role.MEMBER)
    for round_ in history.rounds.values():
        seen: set[tuple[str, MemberFault]] = set()
        for entry in round_.of(MemberPenalised):
            event = entry.event
            decided = round_.decided is not None and round_.decided.place < entry.place
            yield at(entry, "members pay in decided rounds only", True, decided)
            again = (event.member, event.fault) in seen
            yield at(entry, "a member pays once for a fault", False, again)
            seen.add((event.member, event.fault))
            known = event.member in history.terms.members
            yield at(
                entry,
                f"the fault shows: {event.fault.name.lower()}",
                True,
                known and _shows(round_, entry),
            )
            captured = history.before(entry, Captured)
            stake = stakes.get(captured.place) if captured is not None else None
            penalty = member_penalty_of(history.terms.penalties, event.fault)
            amount = slash_amount(penalty, max(stake, 0)) if stake is not None else "Captured"
            yield at(entry, "wei of the penalty, at most the stake", amount, event.amount)
            yield at(
                entry,
                "the stake that is captured is the member's",
                (event.member, event.amount),
                (captured.event.owner, captured.event.amount) if captured is not None else None,
            )


def _shows(round_: RoundHistory, entry: Entry[MemberPenalised]) -> bool:
    member, schedule = entry.event.member, round_.schedule
    if schedule is None:
        return False
    if entry.event.fault is MemberFault.BEACON_WITHHELD:
        late = entry.block > schedule.beacon
        return late and round_.beacon is None and member not in round_.partials
    attested = round_.attested.get(member)
    before = attested is not None and attested.place < entry.place
    if entry.event.fault is MemberFault.VERDICT_DISSENT:
        return before and member not in round_.majority
    return not before and entry.block > schedule.attest


def member_penalty_of(penalties: Penalties, fault: MemberFault) -> int:
    return {
        MemberFault.BEACON_WITHHELD: penalties.beacon_withheld,
        MemberFault.VERDICT_DISSENT: penalties.verdict_dissent,
        MemberFault.VERDICT_SILENCE: penalties.verdict_silence,
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
    """Return the majority at that time, in committee order, without the paying member."""
    cause = distribution.cause
    round_ = history.rounds[job_and_number(cause.event.round)[1]]
    return [
        member
        for member in history.terms.members
        if member != distribution.payer
        and member in round_.majority
        and round_.majority[member].place < cause.place
    ]
