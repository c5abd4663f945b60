"""Checks who committed in a round, and that its accumulator matches, in chain order."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings import events
from opfl_chain.chain.bindings.types import ClientStatus
from opfl_chain.protocol.accumulator import (
    BatchCommitment,
    Commitment,
    DirectCommitment,
    accumulate_all,
    initial_accumulator,
)
from opfl_chain.protocol.identifiers import RoundNumber
from opfl_chain.trail.history import History, RoundHistory
from opfl_chain.trail.report import Finding, at


def check_accumulator(history: History) -> Iterator[Finding]:
    for number, round_ in history.rounds.items():
        recomputed = accumulator_of(history, round_)
        if recomputed is None:
            continue
        kinds = (events.RoundOpened, events.GradientCommitted, events.BatchCommitted)
        yield at(
            [entry for entry in round_.entries if isinstance(entry.event, kinds)][-1],
            "accumulator of the commitments",
            recomputed,
            history.trail.final_state.accumulators.get(number),
            who="contract Jobs",
        )


def accumulator_of(history: History, round_: RoundHistory) -> bytes | None:
    """Return the accumulator of a round's commitments; None if the round was never opened."""
    if round_.opened is None:
        return None
    trail = history.trail
    initial = initial_accumulator(
        trail.chain_id,
        trail.contracts["Jobs"],
        trail.job,
        round_.number,
        round_.opened.event.model_hash,
    )
    return accumulate_all(initial, _commitments(round_))


def _commitments(round_: RoundHistory) -> Iterator[Commitment]:
    for entry in round_.entries:
        event = entry.event
        if isinstance(event, events.GradientCommitted):
            yield DirectCommitment(event.client, event.commitment)
        elif isinstance(event, events.BatchCommitted):
            yield BatchCommitment(event.root, event.count)


def check_commitments(history: History) -> Iterator[Finding]:
    status: dict[str, ClientStatus] = {}
    committed: set[tuple[RoundNumber | None, str]] = set()
    for entry in history.trail.entries:
        event = entry.event
        if isinstance(event, events.ClientEnrolled):
            status[event.client] = ClientStatus.ACTIVE
        elif isinstance(event, events.ClientStatusChanged):
            status[event.client] = event.status
        elif isinstance(event, events.GradientCommitted):
            may = status.get(event.client, ClientStatus.UNKNOWN)
            yield at(entry, "status of the client that commits", ClientStatus.ACTIVE, may)
            before = (entry.round, event.client) in committed
            yield at(entry, "the client committed before in this round", False, before)
            yield at(entry, "the commitment is empty", False, not any(event.commitment))
            committed.add((entry.round, event.client))
        elif isinstance(event, events.BatchCommitted):
            yield at(entry, "the root of the batch is empty", False, not any(event.root))
