"""A tiny network, dense 4-3-2 with a ReLU, through the whole statement of a step."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from slow_proof import SlowProof

from opfl_chain.learning.layout import ParameterLayout, dense
from opfl_chain.learning.model import Model
from opfl_chain.learning.operations.table import Operations
from opfl_chain.learning.proved_step import state_step
from opfl_chain.numerics.field import Elements
from opfl_chain.protocol.inputs import InputFormat
from opfl_chain.protocol.proof.answers import Query, accepts
from opfl_chain.protocol.proof.closing import WORD_DIGITS, Statement, Tolerance
from opfl_chain.protocol.proof.evaluation import biased_digits
from opfl_chain.protocol.proof.prover import Proof, Prover, part_of, part_of_digits
from opfl_chain.protocol.proof.statement import Words
from opfl_chain.protocol.ring import FixedPoint
from opfl_chain.protocol.shares import SharedVector

CONTEXT, ENTROPY = b"\x11" * 32, b"\x12" * 32
LARGEST_LIFT, BATCH = 6, 2
INPUTS = InputFormat((BATCH, 4), (BATCH,), 2, 22, (-1.0, 1.0))
GRADIENTS = FixedPoint(22, 64 << LARGEST_LIFT)
TOLERANCE = Tolerance(1 << 20, 1 << 20)


class Tiny(Model):
    """A dense layer with ReLU, and one without."""

    name = "tiny"
    input_shape = (4,)
    classes = 2

    @property
    def layout(self) -> ParameterLayout:
        return ParameterLayout((*dense("fc1", 4, 3), *dense("fc2", 3, 2)))

    def logits(self, parameters: Mapping[str, Any], examples: Any, operations: Operations) -> Any:
        first = operations.dense(
            examples, parameters["fc1.weight"], parameters["fc1.bias"], name="fc1"
        )
        hidden = operations.relu(first, name="fc1")
        return operations.dense(
            hidden, parameters["fc2.weight"], parameters["fc2.bias"], name="fc2"
        )


@dataclass(frozen=True)
class TinyRules:
    value_bits: int = 30
    error_bits: int = 44
    unit_bits: int = 46
    word_bits: int = 58
    range_bits: int = 9
    projections: int = 16


RANDOM = np.random.default_rng(5)
WEIGHTS = {
    each.name: RANDOM.uniform(-0.7, 0.7, each.shape).astype(np.float32) for each in Tiny().layout
}
FEATURES = RANDOM.uniform(-1, 1, (BATCH, 4)).astype(np.float32)
LABELS = np.array([0, 1])


def gradient(sides: Any = None) -> Any:
    """Return the gradient of the mean loss, in float64 and by hand."""
    w1, b1, w2, b2 = (WEIGHTS[each.name].astype(np.float64) for each in Tiny().layout)
    before = FEATURES @ w1 + b1
    mask = before > 0 if sides is None else sides
    hidden = before * mask
    logits = hidden @ w2 + b2
    exponentials = np.exp(logits - logits.max(1, keepdims=True))
    errors = exponentials / exponentials.sum(1, keepdims=True) - np.eye(2)[LABELS]
    inner = errors @ w2.T * mask
    parts = [FEATURES.T @ inner, inner.sum(0), hidden.T @ errors, errors.sum(0)]
    return np.concatenate([each.ravel() for each in parts]) / BATCH


def statement(weights: Mapping[str, Any] = WEIGHTS) -> Statement:
    return state_step(Tiny(), weights, TinyRules(), INPUTS, GRADIENTS, LARGEST_LIFT, TOLERANCE)


STATEMENT = statement()


class OtherSide(Prover):
    """Takes the other side in one ReLU, and computes everything after it accordingly."""

    def advise(self, group: Words) -> Elements:
        found = super().advise(group)
        if group.name != "fc1.mask":
            return found
        return Elements.of_python([1 - x if i == 0 else x for i, x in enumerate(found.to_python())])


def prove(reals: Any, prover: type[Prover] = Prover) -> tuple[Proof, bool, SlowProof]:
    """Prove, answer with the fast implementation, and compare with the slow one."""
    words = np.rint(reals * GRADIENTS.words_per_unit).astype(np.int64)
    committed = SharedVector.split(words, b"\x01" * 32, b"\x02" * 32)
    given = SharedVector.split(INPUTS.encode(FEATURES, LABELS), b"\x03" * 32, b"\x04" * 32)
    proof = prover(STATEMENT, CONTEXT, ENTROPY, committed.components, given.components).prove()
    query = Query.of(STATEMENT, CONTEXT, proof.packages[0].leaves)
    parts = {part.index: part for package in proof.packages for part in package.held}
    rings = [[[int(x) for x in part] for part in each.components] for each in (committed, given)]
    slow = SlowProof(STATEMENT, CONTEXT, proof.packages, *rings)
    answers = []
    for k in range(3):
        answers.append(query.answer(parts[k], committed.components[k], given.components[k]))
        assert list(answers[-1].words) == slow.answer(k)
    over = {WORD_DIGITS} if proof.usage.bounds["words"] > 1 else set()
    assert slow.broken() == set(proof.usage.broken) | over
    return proof, accepts(answers), slow


def test_honest_step_is_accepted_and_stays_far_below_its_bounds() -> None:
    proof, verdict, slow = prove(gradient())
    assert verdict and proof.usage.holds and not slow.broken()
    assert slow.polynomials() == slow.stated
    assert proof.usage.bounds["words"] < 0.5


@pytest.mark.parametrize("by", [-2, -1, 0, 1])
def test_client_counts_a_projection_as_small_exactly_if_it_has_digits(by: int) -> None:
    limit = 1 << STATEMENT.rules.word_bits
    for projection in (limit + by, -limit + by, by):
        projected = Elements.of_python([0, projection])
        digits = biased_digits(STATEMENT, projected).to_python()[STATEMENT.rules.word_bits + 1 :]
        has_digits = sum(bit << at for at, bit in enumerate(digits)) - limit == projection
        assert (part_of_digits(STATEMENT, projected) <= 1) is has_digits


def test_a_bound_that_is_exceeded_by_one_is_exceeded() -> None:
    """Floats alone would not show it: they have 53 bits."""
    bound = 1 << 100
    assert (bound + 1) / bound == 1.0 < part_of(bound + 1, bound)
    assert part_of(bound, bound) == 1.0 and part_of(1, 0) > 1 and part_of(0, 0) == 0


@pytest.mark.parametrize("coordinate", [0, 14, 15, 22])
def test_gradient_that_is_off_in_one_coordinate_is_rejected(coordinate: int) -> None:
    moved = gradient()
    moved[coordinate] += 1e-4 * np.linalg.norm(moved)
    proof, verdict, slow = prove(moved)
    assert not verdict and not proof.usage.holds
    assert slow.broken() == {"gradient.bound"}


def test_other_side_of_a_relu_is_rejected_whatever_gradient_follows() -> None:
    before = FEATURES @ WEIGHTS["fc1.weight"] + WEIGHTS["fc1.bias"]
    sides = before > 0
    sides[0, 0] = not sides[0, 0]
    proof, verdict, slow = prove(gradient(sides), OtherSide)
    assert not verdict and not proof.usage.holds
    assert slow.broken() == {"residuals.bound", WORD_DIGITS}


def test_hash_follows_policy_and_weights() -> None:
    assert statement().hash == STATEMENT.hash
    moved = WEIGHTS["fc2.bias"] + np.float32(2**-20)
    assert statement({**WEIGHTS, "fc2.bias": moved}).hash != STATEMENT.hash
    other = state_step(
        Tiny(), WEIGHTS, replace(TinyRules(), error_bits=43), INPUTS, GRADIENTS, 6, TOLERANCE
    )
    assert other.hash != STATEMENT.hash
