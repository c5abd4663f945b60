"""Checks that the order of events follows the state machines of jobs and rounds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from opfl_chain.chain.bindings import events
from opfl_chain.protocol.identifiers import RoundNumber
from opfl_chain.trail.history import History, RoundHistory
from opfl_chain.trail.report import Finding, at, now

MAX_VOID_STREAK: Final = 8
"""The number of consecutive void rounds that closes a job, as in the contract Rounds."""

_OF_ACCOUNTS = (events.KeyRegistered, events.Credited, events.CreditWithdrawn)
_ONCE_A_ROUND = (
    events.RoundOpened,
    events.RollCommitted,
    events.BeaconPublished,
    events.VerdictDecided,
    events.RoundFinalised,
    events.RoundVoided,
)
_AFTER_THE_ROLL = (events.PartialPublished, events.BeaconPublished, events.VerdictAttested)


def check_order(history: History) -> Iterator[Finding]:
    for before, entry in pairwise(history.trail.entries):
        yield at(
            entry,
            f"{entry.name} comes after {before.name}",
            f"after block {before.block}, log {before.log_index}",
            f"block {entry.block}, log {entry.log_index}",
            holds=before.place < entry.place,
        )
    for entry in history.trail.entries:
        if not isinstance(entry.event, _OF_ACCOUNTS) and entry is not history.created:
            yield at(
                entry,
                f"{entry.name} comes after the one creation of the job",
                f"after block {history.created.block}, log {history.created.log_index}",
                f"block {entry.block}, log {entry.log_index}",
                holds=entry.place > history.created.place
                and entry.name != events.JobCreated.__name__,
            )
    yield from _start(history)
    for round_ in history.rounds.values():
        yield from _round(history, round_)
    yield from _closing(history)


def _start(history: History) -> Iterator[Finding]:
    first = next(iter(history.rounds.values()), None)
    if first is None or first.opened is None:
        return
    opened = first.opened
    missing = [who for who in history.terms.members if not history.has_joined(who, opened.place)]
    yield at(opened, "members that had not joined before the first round", [], missing)
    enrolled = [entry for entry in history.clients.values() if entry.place < opened.place]
    yield at(
        opened,
        "clients enrolled before the first round",
        "at least 1",
        len(enrolled),
        holds=bool(enrolled),
    )
    yield at(
        opened,
        "the group key is formed with the first round",
        "GroupFormed before",
        None,
        holds=history.before(opened, events.GroupFormed) is not None,
    )
    # Every other one belongs to a seat change, which the check of seats looks at.
    formed = list(history.trail.of(events.GroupFormed))
    due = len(history.seat_changes) + 1
    yield at(opened, "group keys that are formed", due, len(formed))


def _round(history: History, round_: RoundHistory) -> Iterator[Finding]:
    if round_.opened is None:
        first = round_.entries[0]
        yield at(first, f"{first.name} is of a round that was opened", "RoundOpened", None)
        return
    for kind in _ONCE_A_ROUND:
        for entry in list(round_.of(kind))[1:]:
            yield at(entry, f"{entry.name} happens once in a round", 1, 2)
    for entry in round_.entries:
        if entry is not round_.opened:
            yield at(
                entry,
                f"{entry.name} comes after the opening of its round",
                f"after block {round_.opened.block}",
                f"block {entry.block}",
                holds=entry.place > round_.opened.place,
            )
    for entry in round_.entries:
        if isinstance(entry.event, _AFTER_THE_ROLL):
            yield at(
                entry,
                f"{entry.name} comes after the roll",
                "RollCommitted before",
                f"block {round_.roll.block}" if round_.roll is not None else None,
                holds=round_.roll is not None and round_.roll.place < entry.place,
            )
    if round_.number > 0:
        previous = history.rounds.get(RoundNumber(round_.number - 1))
        over = previous.over if previous is not None else None
        yield at(
            round_.opened,
            f"round {round_.number} opens when round {round_.number - 1} is over",
            "RoundFinalised or RoundVoided before",
            f"{over.name} in block {over.block}" if over is not None else None,
            holds=over is not None and over.place < round_.opened.place,
        )
    if round_.finalised is not None:
        yield at(
            round_.finalised,
            "a round is finalised once it is decided, and not voided as well",
            "VerdictDecided before, no RoundVoided",
            [e.name for e in (round_.decided, round_.voided) if e is not None],
            holds=round_.decided is not None
            and round_.voided is None
            and round_.decided.place < round_.finalised.place,
        )
    if round_.voided is not None:
        decided = round_.decided is not None and round_.decided.place < round_.voided.place
        yield at(
            round_.voided,
            "a void round says whether it was decided",
            decided,
            round_.voided.event.decided,
        )


def _closing(history: History) -> Iterator[Finding]:
    """Check that a job closes after its last round or too many void rounds, and not before."""
    closed = list(history.trail.of(events.JobClosed))
    streak, due = 0, None
    for number, round_ in history.rounds.items():
        if round_.over is None or due is not None:
            continue
        streak = streak + 1 if round_.voided is not None else 0
        if number + 1 == history.terms.rounds or streak == MAX_VOID_STREAK:
            due = round_.over
            following = history.after(due, events.JobClosed)
            yield at(
                due,
                "the job is closed by its last round",
                [number + 1],
                [entry.event.rounds for entry in closed],
                holds=following is not None
                and closed == [following]
                and following.event.rounds == number + 1,
            )
    if due is None:
        for entry in closed:
            yield at(entry, "a job with rounds to go stays open", "no JobClosed", "JobClosed")
    for opened in history.trail.of(events.RoundOpened):
        if due is not None:
            yield at(
                opened,
                "no round opens after the job was closed",
                f"before block {due.block}",
                f"block {opened.block}",
                holds=opened.place < due.place,
            )
    progress = history.trail.final_state.progress
    yield now("rounds that were opened", len(history.rounds), progress.next_round)
    yield now("whether the job is closed", due is not None, progress.closed)
    yield now("void rounds since the last final one", streak, progress.void_streak)
