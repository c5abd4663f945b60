"""Checks that a slash is for a fault of the verdict, takes the right amount and ends once."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings import events
from opfl_chain.chain.bindings.types import Penalties, Reason, Role
from opfl_chain.protocol.economics import slash_amount
from opfl_chain.trail.history import History, RoundHistory
from opfl_chain.trail.ledger import movements
from opfl_chain.trail.record import Entry, Place
from opfl_chain.trail.report import Finding, at


def check_slashes(history: History) -> Iterator[Finding]:
    deposits = deposits_at_capture(history, Role.CLIENT)
    for round_ in history.rounds.values():
        requested: dict[str, Entry[events.SlashRequested]] = {}
        for entry in round_.of(events.SlashRequested):
            client = entry.event.client
            yield at(entry, "a client is slashed at most once a round", False, client in requested)
            requested.setdefault(client, entry)
            yield from _request(history, round_, entry, deposits)
        yield from _endings(history, round_, requested)


def _request(
    history: History,
    round_: RoundHistory,
    entry: Entry[events.SlashRequested],
    deposits: dict[Place, int],
) -> Iterator[Finding]:
    event, decided = entry.event, round_.decided
    yield at(
        entry,
        "slashes are for decided verdicts",
        "VerdictDecided before",
        f"block {decided.block}" if decided is not None else None,
        holds=decided is not None and decided.place < entry.place,
    )
    enrolled = history.clients.get(event.client)
    index = enrolled.event.index if enrolled is not None else None
    faults = round_.verdict.faults if round_.verdict is not None else ()
    reason = next((fault.reason for fault in faults if fault.client == index), None)
    yield at(
        entry,
        "reason of the slash, from the verdict",
        reason,
        event.reason,
        holds=reason is not None and int(reason) == int(event.reason),
    )
    schedule = round_.schedule
    if event.reason is Reason.NOT_DELIVERED and decided is not None and schedule is not None:
        yield at(
            entry,
            "missing shares were judged after the time for delivery",
            f"decided after block {schedule.deliver}",
            f"block {decided.block}",
            holds=decided.block > schedule.deliver,
        )
    captured = history.before(entry, events.Captured)
    deposit = deposits.get(captured.place) if captured is not None else None
    penalty = penalty_of(history.terms.penalties, event.reason)
    amount = slash_amount(penalty, max(deposit, 0)) if deposit is not None else "Captured before"
    yield at(entry, "wei of the slash: the penalty, at most the deposit", amount, event.captured)
    yield at(
        entry,
        "the deposit that is captured is the client's",
        (Role.CLIENT, event.client, event.captured),
        (captured.event.role, captured.event.owner, captured.event.amount) if captured else None,
    )


def _endings(
    history: History, round_: RoundHistory, requested: dict[str, Entry[events.SlashRequested]]
) -> Iterator[Finding]:
    ended: set[str] = set()
    for entry in round_.entries:
        event = entry.event
        if not isinstance(event, events.SlashVetoed | events.SlashExecuted):
            continue
        request = requested.get(event.client)
        yield at(
            entry,
            f"{entry.name} ends a slash that is pending",
            "requested before, and neither vetoed nor executed",
            "ended before" if event.client in ended else request and f"block {request.block}",
            holds=request is not None and request.place < entry.place and event.client not in ended,
        )
        ended.add(event.client)
        amount = request.event.captured if request is not None else None
        if isinstance(event, events.SlashExecuted):
            yield at(entry, "wei that are taken for good", amount, event.amount)
            continue
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


def deposits_at_capture(history: History, role: Role) -> dict[Place, int]:
    """Return the stake before each capture, by the place of the event."""
    return {
        entry.place: ledger.stakes[role, event.owner]
        for entry, event, ledger in movements(history)
        if isinstance(event, events.Captured) and event.role is role
    }


def penalty_of(penalties: Penalties, reason: Reason) -> int:
    return {
        Reason.NONE: 0,
        Reason.COMMITMENT_MISMATCH: penalties.commitment_mismatch,
        Reason.NOT_DELIVERED: penalties.not_delivered,
        Reason.INPUT_NOT_COMMITTED: penalties.input_not_committed,
        Reason.REPLAY_OUTSIDE: penalties.replay_outside,
    }[reason]
