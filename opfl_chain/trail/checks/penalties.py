"""Members pay only for faults that the chain shows, and once for each."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings.events import Captured, MemberPenalised
from opfl_chain.chain.bindings.types import MemberFault, Penalties, Role
from opfl_chain.protocol.slashing import slash_amount
from opfl_chain.trail.checks.slashes import deposits_at_capture
from opfl_chain.trail.history import History
from opfl_chain.trail.record import Entry
from opfl_chain.trail.report import Finding, at
from opfl_chain.trail.round_history import RoundHistory


def check(history: History) -> Iterator[Finding]:
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
