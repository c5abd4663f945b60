"""Checks the terms of the job, and the hashes of its policy, boundary and models."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.protocol.economics import BASIS_POINTS
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.trail.history import History
from opfl_chain.trail.report import Finding, at, now


def check_documents(history: History) -> Iterator[Finding]:
    created, terms = history.created, history.terms
    yield at(created, "hash of the policy", terms.policy_hash, keccak256(created.event.policy))
    yield at(
        created, "hash of the boundary", terms.boundary_hash, keccak256(created.event.boundary)
    )
    parts = terms.split.burn + terms.split.treasury + terms.split.committee
    yield at(created, "basis points of the split", BASIS_POINTS, parts)
    yield at(created, "members", 3, len(set(terms.members)))
    yield now("terms of the job", terms, history.trail.final_state.terms)


def check_model_hashes(history: History) -> Iterator[Finding]:
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
    yield now("hash of the current model", model, history.trail.final_state.progress.model_hash)
