"""Proofs that are malformed, missing or of something else: members refuse or fail them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from proving_support import (
    BOUNDARY,
    CLIENT,
    LAYOUT,
    POLICY,
    ROUND,
    WEIGHTS,
    contributor,
    found_by_members,
)

from opfl_chain.learning.proved_step import proof_form
from opfl_chain.numerics.field import MODULUS
from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.delivery import Delivery, Expected
from opfl_chain.protocol.errors import ShareError
from opfl_chain.protocol.proof.package import ProofComponent, ProofForm, ProofLeaves, ProofPackage
from opfl_chain.protocol.shares import share_advice
from opfl_chain.protocol.verdict import FaultReason
from opfl_chain.roles.client.contribution import Contributor
from opfl_chain.roles.member.endpoints import MemberEndpoints
from opfl_chain.rules.registry import rule_of
from opfl_chain.transport.routes import Refusal

OWN = contributor()
MADE = OWN.make(ROUND, WEIGHTS, b"")
WORDS_BEGIN = 32
"""After the salt."""


def delivered() -> list[Delivery]:
    return list(OWN.deliveries(ROUND, MADE, audited=True))


def the_form() -> ProofForm:
    tolerance = rule_of(BOUNDARY).tolerance(BOUNDARY)
    assert tolerance is not None
    return proof_form(POLICY, tolerance)


def with_proofs(proofs: Sequence[ProofPackage | None]) -> list[Delivery]:
    return [replace(each, proof=proof) for each, proof in zip(delivered(), proofs, strict=True)]


def proofs_by(other: Contributor, t: int = ROUND, factor: float = 1) -> list[ProofPackage | None]:
    made = other.make(t, WEIGHTS * np.float32(factor), b"")
    assert made.proof is not None
    return [each.proof for each in other.deliveries(t, made, audited=True)]


OTHERS: dict[str, Callable[[], list[ProofPackage | None]]] = {
    "round": lambda: proofs_by(OWN, t=ROUND + 1),
    "model": lambda: proofs_by(OWN, factor=1.001),
    "boundary": lambda: proofs_by(
        contributor(
            boundary=BOUNDARY.model_copy(
                update={"relative_tolerance": BOUNDARY.relative_tolerance + 1}
            )
        )
    ),
    "policy": lambda: proofs_by(contributor(policy=with_replay(value_bits=29))),
    "transcript": lambda: proofs_by(contributor(secret=b"\2" * 32)),
}


def with_replay(**changes: int) -> Any:
    return POLICY.model_copy(update={"replay": POLICY.replay.model_copy(update=changes)})


@pytest.mark.parametrize("name", OTHERS)
def test_a_proof_of_something_else_fails(name: str) -> None:
    deliveries = with_proofs(OTHERS[name]())
    assert found_by_members(OWN, MADE, deliveries) == (set(), {CLIENT: FaultReason.REPLAY_OUTSIDE})


def test_a_proof_of_another_form_is_refused() -> None:
    proofs = proofs_by(contributor(policy=with_replay(projections=64)))
    with pytest.raises(ShareError, match="words, expected: member 1"):
        found_by_members(OWN, MADE, [delivered()[0], *with_proofs(proofs)[1:]])


@pytest.mark.parametrize(
    ("word", "fault"),
    [
        (MODULUS, FaultReason.COMMITMENT_MISMATCH),
        ((1 << 128) - 1, FaultReason.COMMITMENT_MISMATCH),
        (1 << 100, FaultReason.REPLAY_OUTSIDE),
    ],
    ids=["not canonical", "all bits", "out of range"],
)
def test_a_word_that_is_no_small_one_fails(word: int, fault: FaultReason) -> None:
    """Leaf hashes fit. Who does not hold the component finds no fault in it."""
    form, proofs = the_form(), [each.proof for each in delivered()]
    _, second, _ = proofs
    assert second is not None
    sent = bytearray(second.held[1].sent)
    sent[WORDS_BEGIN : WORDS_BEGIN + 16] = word.to_bytes(16, "little")
    part = ProofComponent(2, bytes(sent))
    hashes = list(second.leaves.hashes)
    for place, leaf in part.leaf_hashes(form).items():
        hashes[place] = leaf
    changed = [
        replace(
            each,
            leaves=ProofLeaves(tuple(hashes)),
            held=tuple(part if held.index == 2 else held for held in each.held),
        )
        for each in proofs
        if each is not None
    ]
    assert found_by_members(OWN, MADE, with_proofs(changed)) == (set(), {CLIENT: fault})


def test_a_missing_proof_fails_unless_one_member_alone_misses_it() -> None:
    proofs = [each.proof for each in delivered()]
    missing = {CLIENT: FaultReason.NOT_DELIVERED}
    assert found_by_members(OWN, MADE, with_proofs([None] * 3)) == (set(), missing)
    assert found_by_members(OWN, MADE, with_proofs([None, None, proofs[2]])) == (set(), missing)
    assert found_by_members(OWN, MADE, with_proofs([None, *proofs[1:]])) == (set(), {})


def test_advice_instead_of_a_proof_is_refused() -> None:
    advice = share_advice(Scheme.SHARES, np.arange(5), bytes(32))
    deliveries = [
        replace(each, proof=None, advice=given)
        for each, given in zip(delivered(), advice, strict=True)
    ]
    with pytest.raises(ShareError, match="a proof starts with b'OPFP'"):
        found_by_members(OWN, MADE, deliveries)


def test_a_member_takes_no_audited_delivery_without_its_proof_and_no_other_with_one() -> None:
    unused: Any = None
    expected = Expected(
        POLICY.commitment_scheme, 0, LAYOUT.size, POLICY.input_format.words, 0, the_form()
    )
    member = MemberEndpoints(unused, unused, unused, unused, expected, unused)
    whole = delivered()[0]
    member._require_complete(whole, audited=True)
    with pytest.raises(Refusal, match="audited, but its delivery has no proof"):
        member._require_complete(replace(whole, proof=None), audited=True)
    with pytest.raises(Refusal, match="not audited: do not send"):
        member._require_complete(replace(whole, training_input=None), audited=False)
