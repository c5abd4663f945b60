"""Honest steps are accepted, use little of every bound, and imply the gradient that torch finds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from proof_steps import (
    CONTEXT,
    RULES,
    SMALL,
    TOLERANCE,
    SmallModel,
    Step,
    accepted,
    answers_to,
    cheating,
    distance,
    exact_gradient,
    honest_step,
    lenet_step,
    random_weights,
    state,
)

from opfl_chain.learning.local_step import LocalStep
from opfl_chain.protocol.advice import lift_of
from opfl_chain.protocol.proof.answers import accepts
from opfl_chain.protocol.proof.closing import Tolerance

STEPS = {
    "small": lambda: honest_step(SMALL),
    "small, 4 examples": lambda: honest_step(SMALL, 4),
    "small, first layer frozen": lambda: honest_step(SmallModel(frozen="conv"), 4),
    "small, sure of its label": lambda: honest_step(lead=12),
    "small, large logits": lambda: honest_step(rise=100.0),
    "lenet": lambda: lenet_step(1),
    "lenet, 4 examples": lambda: lenet_step(4),
}


@pytest.fixture(params=STEPS)
def step(request: pytest.FixtureRequest) -> Step:
    return STEPS[request.param]()


def test_an_honest_step_is_accepted_below_half_of_every_bound(step: Step) -> None:
    proof = cheating(step).prove()
    assert proof.usage.holds and not proof.usage.failures()
    assert all(used < 0.5 for used in proof.usage.bounds.values()), proof.usage
    assert accepts(answers_to(step, proof.packages))


def test_the_advice_implies_the_gradient_of_torch(step: Step) -> None:
    implied = step.implied_gradient()
    assert distance(implied, exact_gradient(step)) < 1e-8
    run = LocalStep(step.model, torch.device("cpu")).run
    result = run(step.weights, step.examples, step.labels, pre_activations=True, masks=step.masks)
    assert distance(result.gradient, implied) < 1e-6


def test_the_advice_has_the_sides_and_the_lift_of_the_step(step: Step) -> None:
    run = LocalStep(step.model, torch.device("cpu")).run
    result = run(step.weights, step.examples, step.labels, pre_activations=True)
    for name, mask in step.masks.items():
        clear = np.abs(result.pre_activations[name]) > 1e-5
        np.testing.assert_array_equal(mask[clear], result.masks[name][clear])
    logits = result.logits.astype(np.float64)
    assert step.words("loss.lift").to_floats().argmax() == lift_of(logits, step.labels, 22)


def test_a_step_that_is_sure_is_lifted() -> None:
    assert honest_step(lead=12).words("loss.lift").to_floats().argmax() > 5


@pytest.mark.parametrize("lead", [20, 24, 28, 32, 36, 40, 50, 100])
def test_a_step_that_is_very_sure_is_accepted(lead: int) -> None:
    step = honest_step(lead=lead)
    proof = cheating(step).prove()
    assert all(used < 0.5 for used in proof.usage.bounds.values()), proof.usage
    assert accepts(answers_to(step, proof.packages))


def test_the_same_entropy_and_attempt_give_the_same_bytes() -> None:
    step = honest_step()

    def sent(**options: object) -> list[bytes]:
        return [each.encode() for each in cheating(step, **options).prove().packages]

    first = sent()
    assert sent() == first
    for options in ({"attempt": 1}, {"entropy": b"\3" * 32}, {"context": b"\4" * 32}):
        assert not set(sent(**options)) & set(first)


def test_no_two_statements_share_masks() -> None:
    """Masks that are used for two challenges would tell about the words."""
    step = honest_step()
    other = step.with_statement(state(SMALL, step.weights, 1, tolerance=Tolerance(1, 1)))
    seeds = [cheating(each).sharing.seeds for each in (step, other)]
    assert not set(seeds[0]) & set(seeds[1])


def test_the_hash_of_a_statement_binds_weights_rules_and_tolerance() -> None:
    weights = random_weights(SMALL, 1)
    one_quantum = {**weights, "fc1.bias": weights["fc1.bias"] + np.float32(2**-22)}
    relative = Tolerance(TOLERANCE.relative + 1, TOLERANCE.absolute)
    absolute = Tolerance(TOLERANCE.relative, TOLERANCE.absolute + 1)
    others = [
        state(SMALL, one_quantum, 1),
        state(SMALL, weights, 2),
        state(SmallModel(frozen="conv"), weights, 1),
        state(SMALL, weights, 1, tolerance=relative),
        state(SMALL, weights, 1, tolerance=absolute),
        *(
            state(SMALL, weights, 1, RULES.model_copy(update={name: getattr(RULES, name) - less}))
            for name, less in (
                ("largest_lift", 1),
                ("value_bits", 1),
                ("error_bits", 1),
                ("unit_bits", 1),
                ("word_bits", 1),
                ("range_bits", 1),
                ("projections", -8),
            )
        ),
    ]
    own = state(SMALL, weights, 1).hash
    assert own == state(SMALL, random_weights(SMALL, 1), 1).hash
    assert len({own, *(each.hash for each in others)}) == 1 + len(others)


def test_a_proof_is_for_one_context() -> None:
    step = honest_step()
    proof = cheating(step, context=b"\1" * 32).prove()
    assert accepts(answers_to(step, proof.packages, context=b"\1" * 32))
    assert not accepts(answers_to(step, proof.packages, context=CONTEXT))


def test_a_proof_is_for_one_model() -> None:
    step, other = honest_step(), honest_step(seed=2)
    proof = cheating(step).prove()
    assert not accepts(answers_to(other, proof.packages))
    assert accepted(other)
