"""Answers and leaf hashes tell nothing about the words but whether they fit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from proof_steps import CONTEXT, cheating, components, honest_step

from opfl_chain.numerics.field import MODULUS
from opfl_chain.protocol.proof.answers import Query
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.proof.package import ProofForm, Sharing
from opfl_chain.protocol.proof.transcript import Transcript


def test_the_holder_of_both_seeds_cannot_confirm_a_guess_of_the_words() -> None:
    """It could compute the third component of guessed words: only the salt keeps its hash apart."""
    step = honest_step()
    prover = cheating(step)
    packages = prover.prove().packages
    form = ProofForm.of(step.statement)
    stage = prover.value(step.statement.stage(0)[0].wire)

    def leaf(salt: bytes) -> bytes:
        sharing = Sharing(prover.sharing.seeds, salt, Transcript(bytes(32)))
        sharing.share(stage)
        return sharing.packages()[0].leaves.hashes[2]

    salt = prover.sharing.salt
    assert leaf(salt) == leaf(salt) != leaf(bytes(32))
    assert salt not in packages[0].encode()
    for package in packages[1:]:
        assert salt in package.encode()
        package.verify(form)


PROOFS = 64
PARTS = 8
LIMIT = 29.9
"""Chi squared of 7 degrees of freedom is above it once in 10,000 times."""


@cache
def answers_of(seed: int) -> list[list[Answer]]:
    """Return the answers to many proofs of one step, each with entropy of its own."""
    step = honest_step(seed=seed)
    rings = components(step.gradient, 1), components(step.inputs, 5)
    found = []
    for number in range(PROOFS):
        entropy = bytes([seed]) + number.to_bytes(31, "big")
        first, second, _ = cheating(step, entropy=entropy).prove().packages
        query = Query.of(step.statement, CONTEXT, first.leaves)
        parts = (*first.held, second.held[1])
        found.append([query.answer(part, *(ring[part.index] for ring in rings)) for part in parts])
    return found


def chi_squared(words: list[int]) -> float:
    """Return the statistic of words in equal parts of the field."""
    counts = np.bincount([word * PARTS // MODULUS for word in words], minlength=PARTS)
    expected = len(words) / PARTS
    return float(((counts - expected) ** 2 / expected).sum())


def bits_of(words: list[int]) -> NDArray[np.int64]:
    """Return how often each bit is set."""
    return np.array([sum(word >> bit & 1 for word in words) for bit in range(127)])


@pytest.mark.parametrize("seed", [1, 2])
def test_opened_answers_are_uniform_whatever_the_secret(seed: int) -> None:
    totals = [first + second + third for first, second, third in answers_of(seed)]
    assert all(total.rest == 0 for total in totals)
    assert all(total.product == total.left * total.right % MODULUS for total in totals)
    for words in ([each.left for each in totals], [each.right for each in totals]):
        assert len(set(words)) == PROOFS
        assert chi_squared(words) < LIMIT
        # Five standard deviations of as many fair coins.
        assert (np.abs(bits_of(words) - PROOFS / 2) < 5 * PROOFS**0.5 / 2).all()


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("component", range(3))
def test_answers_of_each_component_are_uniform(seed: int, component: int) -> None:
    found = [answers[component] for answers in answers_of(seed)]
    for word in range(4):
        assert chi_squared([each.words[word] for each in found]) < LIMIT


def test_both_opened_values_are_independent() -> None:
    totals = [sum(answers[1:], answers[0]) for answers in answers_of(1)]
    left, right = (
        np.array([word / MODULUS for word in words])
        for words in zip(*((each.left, each.right) for each in totals), strict=True)
    )
    assert abs(np.corrcoef(left, right)[0, 1]) < 5 / PROOFS**0.5
