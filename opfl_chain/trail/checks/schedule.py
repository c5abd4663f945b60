"""Checks that every event falls into its phase, by block."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings import events
from opfl_chain.chain.bindings.types import Outcome, Role
from opfl_chain.chain.contracts.contract import Event
from opfl_chain.trail.history import History, RoundHistory
from opfl_chain.trail.record import Entry
from opfl_chain.trail.report import Finding, at


def check_schedule(history: History) -> Iterator[Finding]:
    yield from _enrolment(history)
    for round_ in history.rounds.values():
        yield from _round(history, round_)
    yield from _leaving(history)


def _enrolment(history: History) -> Iterator[Finding]:
    created, trail = history.created, history.trail
    deadline = created.block + history.terms.phases.enrol
    for entry in (*trail.of(events.MemberJoined), *trail.of(events.ClientEnrolled)):
        yield _within(entry, created.block, deadline)
    opened = next((r.opened for r in history.rounds.values() if r.opened is not None), None)
    if opened is None:
        return
    yield _within(opened, deadline + 1, None)
    for replaced in trail.of(events.DatasetRootReplaced):
        yield at(
            replaced,
            "data sets are fixed by the first round",
            f"before block {opened.block}, log {opened.log_index}",
            f"block {replaced.block}, log {replaced.log_index}",
            holds=replaced.place < opened.place,
        )


def _round(history: History, round_: RoundHistory) -> Iterator[Finding]:
    opened, schedule = round_.opened, round_.schedule
    if opened is None or schedule is None:
        return
    roll = round_.roll.block if round_.roll is not None else opened.block
    for committed in round_.of(events.RollCommitted):
        yield _within(committed, opened.block, schedule.roll)
    for signed in (*round_.of(events.PartialPublished), *round_.of(events.BeaconPublished)):
        yield _within(signed, roll, schedule.beacon)
    for attested in round_.of(events.VerdictAttested):
        yield _within(attested, roll, schedule.attest)
        known = round_.beacon is not None and round_.beacon.place < attested.place
        yield at(
            attested,
            "attested when it is known who is audited",
            f"after the beacon, or after block {schedule.beacon}",
            f"block {attested.block}",
            holds=known or attested.block > schedule.beacon,
        )
    for finalised in round_.of(events.RoundFinalised):
        yield _within(finalised, roll, schedule.finalise)
    if round_.voided is not None:
        last = schedule.attest if round_.roll is not None else schedule.roll
        if round_.voided.event.decided:
            last = schedule.finalise
        yield _within(round_.voided, last + 1, None)
    for charged in round_.of(events.ClientCharged):
        if charged.event.outcome is Outcome.UNANSWERED:
            yield _within(charged, schedule.response + 1, None)
    for unlocked in round_.of(events.AuditUnlocked):
        audit = history.audits.get((round_.number, unlocked.event.client))
        if audit is not None:
            yield _within(unlocked, audit.held.block + history.terms.unlock_delay + 1, None)


def _leaving(history: History) -> Iterator[Finding]:
    due: dict[tuple[Role, str], int] = {}
    for started in history.trail.of(events.UnbondingStarted):
        withdrawable_at = started.block + history.terms.unbonding_delay
        yield at(
            started, "end of the unbonding delay", withdrawable_at, started.event.withdrawable_at
        )
        due.setdefault((started.event.role, started.event.owner), withdrawable_at)
        if started.event.role is Role.MEMBER:
            yield at(
                started,
                "members serve until the job is over and every audit decided",
                True,
                _is_over(history, started),
            )
    for withdrawn in history.trail.of(events.Withdrawn):
        first = due.get((withdrawn.event.role, withdrawn.event.owner))
        if first is None:
            yield at(withdrawn, "a stake is asked for before it is taken", "UnbondingStarted", None)
        else:
            yield _within(withdrawn, first, None)


def _is_over(history: History, entry: Entry[Event]) -> bool:
    if not history.rounds:
        return is_stillborn(history, entry)
    closed = next(history.trail.of(events.JobClosed), None)
    undecided = any(
        audit.held.place < entry.place and (audit.ended is None or audit.ended.place > entry.place)
        for audit in history.audits.values()
    )
    return closed is not None and closed.place < entry.place and not undecided


def is_stillborn(history: History, entry: Entry[Event]) -> bool:
    """Return whether the job could never start, at an event."""
    staked = all(member in history.joined for member in history.terms.members)
    started = any(
        round_.opened is not None and round_.opened.place < entry.place
        for round_ in history.rounds.values()
    )
    late = entry.block > history.created.block + history.terms.phases.enrol
    return late and not started and not (staked and history.clients)


def _within(entry: Entry[Event], first: int, last: int | None) -> Finding:
    until = "on" if last is None else f"to {last}"
    return at(
        entry,
        f"{entry.name} is in its phase",
        f"block {first} {until}",
        f"block {entry.block}",
        holds=first <= entry.block and (last is None or entry.block <= last),
    )
