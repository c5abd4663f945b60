"""Answers with proofs that are malformed, missing or of something else: refused, or failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from proving_support import (
    BOUNDARY,
    OPENING,
    POLICY,
    ROUND,
    WEIGHTS,
    contributor,
    found_by_members,
    sealed,
    the_form,
)

from opfl_chain.numerics.field import MODULUS
from opfl_chain.protocol.audit_exchange import Conclusion
from opfl_chain.protocol.bundle import Bundle, answer_parts
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.errors import BundleError
from opfl_chain.protocol.proof.package import Packages, ProofComponent, ProofLeaves
from opfl_chain.protocol.shares import share_advice
from opfl_chain.protocol.verdict import Outcome
from opfl_chain.roles.client.contribution import Contributor

OWN = contributor()
MADE = OWN.make(ROUND, OPENING, WEIGHTS, b"")
WORDS_BEGIN = 32
"""After the salt."""


def answer(**parts: Any) -> Bundle:
    """Return an answer with the client's own input, and other advice or proof."""
    given = answer_parts(OWN.committed_input(ROUND), OWN.dataset.proof(ROUND), **parts)
    return sealed(OWN, BundleKind.ANSWER, MADE, parts=given)


def proof_by(
    other: Contributor, t: int = ROUND, factor: float = 1, opening: bytes = OPENING
) -> Packages:
    made = other.make(t, opening, WEIGHTS * np.float32(factor), b"")
    proof = other.proof(made)
    assert proof is not None
    return proof


OTHERS: dict[str, Callable[[], Packages]] = {
    "round": lambda: proof_by(OWN, t=ROUND + 1),
    "opening": lambda: proof_by(OWN, opening=b"\5" * 32),
    "model": lambda: proof_by(OWN, factor=1.001),
    "boundary": lambda: proof_by(
        contributor(
            boundary=BOUNDARY.model_copy(
                update={"relative_tolerance": BOUNDARY.relative_tolerance + 1}
            )
        )
    ),
    "policy": lambda: proof_by(contributor(policy=with_replay(value_bits=29))),
    "transcript": lambda: proof_by(contributor(secret=b"\2" * 32)),
}


def with_replay(**changes: int) -> Any:
    return POLICY.model_copy(update={"replay": POLICY.replay.model_copy(update=changes)})


@pytest.mark.parametrize("name", OTHERS)
def test_a_proof_of_something_else_fails(name: str) -> None:
    found = found_by_members(OWN, MADE, answer(proof=OTHERS[name]()))
    assert found == Conclusion(Outcome.OUTSIDE)


def test_a_proof_of_another_form_is_refused() -> None:
    proof = proof_by(contributor(policy=with_replay(projections=64)))
    with pytest.raises(BundleError, match=r"public part has|bodies have"):
        found_by_members(OWN, MADE, answer(proof=proof))


@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        (MODULUS, Outcome.UNANSWERED),
        ((1 << 128) - 1, Outcome.UNANSWERED),
        (1 << 100, Outcome.OUTSIDE),
    ],
    ids=["not canonical", "all bits", "out of range"],
)
def test_a_word_that_is_no_small_one_fails(word: int, outcome: Outcome) -> None:
    """Leaf hashes fit. Who holds the component complains, and everybody sees why."""
    form, proofs = the_form(), OWN.proof(MADE)
    assert proofs is not None
    sent = bytearray(proofs[1].held[1].sent)
    sent[WORDS_BEGIN : WORDS_BEGIN + 16] = word.to_bytes(16, "little")
    part = ProofComponent(2, bytes(sent))
    hashes = list(proofs[1].leaves.hashes)
    for place, leaf in part.leaf_hashes(form).items():
        hashes[place] = leaf
    first, second, third = (
        replace(
            each,
            leaves=ProofLeaves(tuple(hashes)),
            held=tuple(part if held.index == 2 else held for held in each.held),
        )
        for each in proofs
    )
    found = found_by_members(OWN, MADE, answer(proof=(first, second, third)))
    assert found == Conclusion(outcome)


def test_an_answer_without_a_proof_is_refused() -> None:
    with pytest.raises(BundleError, match="public part has"):
        found_by_members(OWN, MADE, answer())


def test_advice_instead_of_a_proof_is_refused() -> None:
    advice = share_advice(Scheme.SHARES, np.arange(5), bytes(32))
    with pytest.raises(BundleError, match="public part has"):
        found_by_members(OWN, MADE, answer(advice=advice))
