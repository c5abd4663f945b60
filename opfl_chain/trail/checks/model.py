"""Every round opens on the model that the last final round ended with."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.trail.history import History
from opfl_chain.trail.report import Finding, at, now


def check(history: History) -> Iterator[Finding]:
    model = history.terms.model_hash
    for round_ in history.rounds.values():
        if round_.opened is not None:
            yield at(
                round_.opened,
                "hash of the model that the round opens on",
                model,
                round_.opened.event.model_hash,
            )
        if round_.finalised is not None:
            model = round_.finalised.event.model_hash
    yield now("hash of the current model", model, history.trail.standing.progress.model_hash)
