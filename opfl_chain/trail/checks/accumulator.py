"""The accumulator of every round is that of its commitments, in the order of the chain."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings.events import BatchCommitted, GradientCommitted, RoundOpened
from opfl_chain.protocol.accumulator import (
    BatchCommitment,
    Commitment,
    DirectCommitment,
    accumulate_all,
    initial_accumulator,
)
from opfl_chain.trail.history import History
from opfl_chain.trail.report import Finding, at
from opfl_chain.trail.round_history import RoundHistory


def check(history: History) -> Iterator[Finding]:
    for number, round_ in history.rounds.items():
        recomputed = accumulator_of(history, round_)
        if recomputed is None:
            continue
        kinds = (RoundOpened, GradientCommitted, BatchCommitted)
        yield at(
            [entry for entry in round_.entries if isinstance(entry.event, kinds)][-1],
            "accumulator of the commitments",
            recomputed,
            history.trail.standing.accumulators.get(number),
            who="contract Jobs",
        )


def accumulator_of(history: History, round_: RoundHistory) -> bytes | None:
    """What the commitments of a round give; None for a round that was never opened."""
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
        if isinstance(event, GradientCommitted):
            yield DirectCommitment(event.client, event.commitment)
        elif isinstance(event, BatchCommitted):
            yield BatchCommitment(event.root, event.count)
