"""Checks the model, the seats and the hash that every round opens with."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.rpc import unhex
from opfl_chain.protocol.roll import opening_of
from opfl_chain.trail.history import History, RoundHistory
from opfl_chain.trail.report import Finding, at, now


def check_openings(history: History) -> Iterator[Finding]:
    model = history.terms.model_hash if history.rounds else bytes(32)
    for number, round_ in history.rounds.items():
        opened = round_.opened
        if opened is not None:
            event = opened.event
            yield at(opened, "hash of the model that the round opens on", model, event.model_hash)
            epoch = history.epoch_at(opened.place)
            yield at(opened, "seat changes before the round", epoch, event.epoch)
            yield at(opened, "hash of the opening", _opening(history, round_), event.opening)
            found = history.trail.final_state.rounds.get(number)
            if found is not None:
                seats = history.named(found.seats)
                yield now("block of the opening", opened.block, found.opened_at, round_=number)
                yield now("hash of the opening", event.opening, found.opening, round_=number)
                yield now("seat changes before", event.epoch, found.epoch, round_=number)
                yield now("seats of the round", round_.seats, seats, round_=number)
        if round_.finalised is not None:
            model = round_.finalised.event.model_hash
    yield now("hash of the current model", model, history.trail.final_state.progress.model_hash)


def _opening(history: History, round_: RoundHistory) -> bytes | str:
    """Return the hash that the contract stores, which differs on every chain and model."""
    trail, opened = history.trail, round_.opened
    parent = trail.parents.get(opened.block) if opened is not None else None
    if opened is None or parent is None:
        return "the hash of the block before"
    return opening_of(
        trail.chain_id,
        trail.contracts["Rounds"],
        trail.job,
        round_.number,
        opened.event.model_hash,
        unhex(parent),
    )
