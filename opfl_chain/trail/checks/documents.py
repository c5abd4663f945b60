"""The terms are those of the job, and policy and boundary the ones that they name."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.slashing import BASIS_POINTS
from opfl_chain.trail.history import History
from opfl_chain.trail.report import Finding, at, now


def check(history: History) -> Iterator[Finding]:
    created, terms = history.created, history.terms
    yield at(created, "hash of the policy", terms.policy_hash, keccak256(created.event.policy))
    yield at(
        created, "hash of the boundary", terms.boundary_hash, keccak256(created.event.boundary)
    )
    parts = terms.split.burn + terms.split.treasury + terms.split.committee
    yield at(created, "basis points of the split", BASIS_POINTS, parts)
    yield at(created, "members", 3, len(set(terms.members)))
    yield now("terms of the job", terms, history.trail.standing.terms)
