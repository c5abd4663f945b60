"""Checks that audits that did not pass are held once, and end once: charged, acquitted or unlocked.

An audit that is not held, or not decided, is no discrepancy: members may still be at it. It is
named among the limits of the report.
"""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings import events
from opfl_chain.chain.bindings.types import Charge, ChargeStatus, Outcome, Role
from opfl_chain.trail.history import Audit, Ending, History, RoundHistory
from opfl_chain.trail.ledger import movements
from opfl_chain.trail.record import Entry, Place
from opfl_chain.trail.report import Finding, at, now

_AGAINST = (Outcome.OUTSIDE, Outcome.UNANSWERED)
_STATUS = {
    events.ClientCharged: ChargeStatus.CHARGED,
    events.ClientAcquitted: ChargeStatus.ACQUITTED,
    events.AuditUnlocked: ChargeStatus.UNLOCKED,
}


def check_audits(history: History) -> Iterator[Finding]:
    deposits = stakes_at_capture(history, Role.CLIENT)
    for round_ in history.rounds.values():
        held: dict[str, Entry[events.AuditHeld]] = {}
        for entry in round_.of(events.AuditHeld):
            client = entry.event.client
            yield at(entry, "an audit is held at most once", False, client in held)
            held.setdefault(client, entry)
            yield from _hold(history, round_, entry, deposits)
        yield from _endings(history, round_, held)
    charges = history.trail.final_state.charges
    for (number, client), audit in history.audits.items():
        found = charges.get((number, client))
        yield now("charge of the client", _charge(audit), found, round_=number, who=client)


def _hold(
    history: History,
    round_: RoundHistory,
    entry: Entry[events.AuditHeld],
    deposits: dict[Place, int],
) -> Iterator[Finding]:
    event, decided = entry.event, round_.decided
    yield at(
        entry,
        "audits are held after the verdict",
        "VerdictDecided before",
        f"block {decided.block}" if decided is not None else None,
        holds=decided is not None and decided.place < entry.place,
    )
    yield at(entry, "the client that is held was audited", True, round_.is_audited(event.client))
    enrolled = history.clients.get(event.client)
    index = enrolled.event.index if enrolled is not None else None
    passed = index is None or index in (round_.passed or ())
    yield at(entry, "the client that is held passed", False, passed)
    if round_.pairs is not None:
        on_roll = index in {listed for listed, _ in round_.pairs}
        yield at(entry, "the client that is held is on the roll", True, on_roll)
    captured = history.before(entry, events.Captured)
    deposit = deposits.get(captured.place) if captured is not None else None
    penalty = history.terms.penalties.client
    amount = min(penalty, max(deposit, 0)) if deposit is not None else "Captured before"
    yield at(entry, "wei that are held: the penalty, at most the deposit", amount, event.held)
    yield at(
        entry,
        "the deposit that is captured is the client's",
        (Role.CLIENT, event.client, event.held),
        (captured.event.role, captured.event.owner, captured.event.amount) if captured else None,
    )


def _endings(
    history: History, round_: RoundHistory, held: dict[str, Entry[events.AuditHeld]]
) -> Iterator[Finding]:
    ended: set[str] = set()
    for entry in round_.entries:
        event = entry.event
        if not isinstance(event, Ending):
            continue
        hold = held.get(event.client)
        yield at(
            entry,
            f"{entry.name} ends an audit that is held",
            "held before, and not ended",
            "ended before" if event.client in ended else hold and f"block {hold.block}",
            holds=hold is not None and hold.place < entry.place and event.client not in ended,
        )
        ended.add(event.client)
        amount = hold.event.held if hold is not None else None
        if isinstance(event, events.ClientCharged):
            yield at(
                entry,
                "a charge says why",
                "outside or unanswered",
                event.outcome,
                holds=event.outcome in _AGAINST,
            )
            yield at(entry, "wei that are taken for good", amount, event.amount)
            continue
        if isinstance(event, events.AuditUnlocked):
            joined = [who for who in history.terms.standbys if who in history.joined]
            yield at(entry, "deposits are unlocked in jobs without a standby", [], joined)
        yield at(entry, "wei that go back", amount, event.released)
        released = history.after(entry, events.Released)
        yield at(
            entry,
            "the deposit that they go back to is the client's",
            (Role.CLIENT, event.client, event.released),
            (released.event.role, released.event.owner, released.event.amount)
            if released
            else None,
        )


def _charge(audit: Audit) -> Charge:
    ended = audit.ended
    status = ChargeStatus.HELD if ended is None else _STATUS[type(ended.event)]
    return Charge(status, audit.held.block, audit.held.event.held)


def stakes_at_capture(history: History, role: Role) -> dict[Place, int]:
    """Return the stake before each capture, by the place of the event."""
    return {
        entry.place: ledger.stakes[role, event.owner]
        for entry, event, ledger in movements(history)
        if isinstance(event, events.Captured) and event.role is role
    }
