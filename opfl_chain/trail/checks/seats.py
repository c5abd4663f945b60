"""Checks that standbys take seats one after the other, and who sits where now."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings.events import GroupFormed, SeatChanged
from opfl_chain.trail.history import History
from opfl_chain.trail.record import Entry
from opfl_chain.trail.report import END, Finding, at, now


def check_seats(history: History) -> Iterator[Finding]:
    for epoch, change in enumerate(history.seat_changes, 1):
        yield from _change(history, change, epoch)
    participants = history.trail.final_state.participants
    yield now("seats", history.seats_at(END), history.named(participants.seats))
    yield now("seat changes", history.epoch_at(END), participants.epoch)
    joined = sum(1 << n for n, who in enumerate(history.roster) if who in history.joined)
    yield now("numbers of the roster that have staked", joined, participants.joined)


def _change(history: History, change: Entry[SeatChanged], epoch: int) -> Iterator[Finding]:
    event, seats = change.event, history.seats_at(change.place)
    yield at(change, "number of the seat change", epoch, event.epoch)
    holder = seats[event.seat] if event.seat < len(seats) else "one of three seats"
    yield at(change, "who gives up the seat", holder, event.from_)
    yield at(change, "who takes the seat has none", False, event.to in seats)
    yield at(
        change,
        "who takes the seat is of the roster and has staked",
        True,
        history.has_joined(event.to, change.place),
    )
    formed = history.after(change, GroupFormed)
    found = formed.event.epoch if formed is not None else None
    yield at(change, "the group key is formed anew with the change", epoch, found)
