"""Checks that every event falls into its phase, by block."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings import events
from opfl_chain.chain.bindings.types import Role
from opfl_chain.chain.contracts.contract import Event
from opfl_chain.trail.history import History, RoundHistory
from opfl_chain.trail.record import Entry
from opfl_chain.trail.report import Finding, at


def check_schedule(history: History) -> Iterator[Finding]:
    yield from _enrolment(history)
    for round_ in history.rounds.values():
        yield from _round(history, round_)
    yield from _slashes(history)
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
    commit = opened.block + history.terms.phases.commit
    yield at(opened, "last block of the commit phase", commit, opened.event.commit_deadline)
    for committed in (*round_.of(events.GradientCommitted), *round_.of(events.BatchCommitted)):
        yield _within(committed, opened.block, schedule.commit)
    for signed in (*round_.of(events.PartialPublished), *round_.of(events.BeaconPublished)):
        yield _within(signed, schedule.commit + 1, schedule.beacon)
    for attested in round_.of(events.VerdictAttested):
        yield _within(attested, schedule.commit + 1, schedule.attest)
        known = round_.beacon is not None and round_.beacon.place < attested.place
        yield at(
            attested,
            "attested when it is known who is audited",
            f"after the beacon, or after block {schedule.beacon}",
            f"block {attested.block}",
            holds=known or attested.block > schedule.beacon,
        )
    for finalised in round_.of(events.RoundFinalised):
        yield _within(finalised, schedule.commit + 1, schedule.finalise)
    if round_.voided is not None:
        last = schedule.finalise if round_.voided.event.decided else schedule.attest
        yield _within(round_.voided, last + 1, None)
    for requested in round_.of(events.SlashRequested):
        yield _within(requested, schedule.commit + 1, schedule.request)


def _slashes(history: History) -> Iterator[Finding]:
    for (number, client), slash in history.slashes.items():
        requested = slash.requested
        executable_at = requested.block + history.terms.phases.veto
        yield at(requested, "end of the veto window", executable_at, requested.event.executable_at)
        round_ = history.rounds[number]
        for vetoed in round_.of(events.SlashVetoed):
            if vetoed.event.client == client:
                yield _within(vetoed, requested.block, executable_at - 1)
        for executed in round_.of(events.SlashExecuted):
            if executed.event.client == client:
                yield _within(executed, executable_at, None)


def _leaving(history: History) -> Iterator[Finding]:
    due: dict[tuple[Role, str], int] = {}
    for started in history.trail.of(events.UnbondingStarted):
        withdrawable_at = started.block + history.terms.unbonding_delay
        yield at(
            started, "end of the unbonding delay", withdrawable_at, started.event.withdrawable_at
        )
        due.setdefault((started.event.role, started.event.owner), withdrawable_at)
    for withdrawn in history.trail.of(events.Withdrawn):
        first = due.get((withdrawn.event.role, withdrawn.event.owner))
        if first is None:
            yield at(withdrawn, "a stake is asked for before it is taken", "UnbondingStarted", None)
        else:
            yield _within(withdrawn, first, None)


def _within(entry: Entry[Event], first: int, last: int | None) -> Finding:
    until = "on" if last is None else f"to {last}"
    return at(
        entry,
        f"{entry.name} is in its phase",
        f"block {first} {until}",
        f"block {entry.block}",
        holds=first <= entry.block and (last is None or entry.block <= last),
    )
