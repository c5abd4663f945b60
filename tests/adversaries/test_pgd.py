"""The adaptive attack stays on its sphere and support, and reaches its objective."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from attack_support import LAYOUT, LOCAL, POLICY, attacked, weights

from opfl_chain.adversaries.pgd import PgdSettings, Victims, attack, logits_at, supports
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.learning.local_step import LocalStep
from opfl_chain.learning.registry import MODELS, model_named
from opfl_chain.verifiers.norms import NoVerifier, RoflL2
from opfl_chain.verifiers.verifier import Reference

COUNT = 3
RATE = POLICY.optimizer.learning_rate
SHORT = PgdSettings(iterations=4)


@cache
def victims() -> tuple[Victims, list[Reference]]:
    steps = [attacked(t) for t in range(COUNT)]
    gradients = torch.tensor(np.stack([step.gradient for step in steps]))
    # The label is the model's prediction after the honest update, as for instances.
    rows = torch.tensor(np.stack([weights()] * COUNT))
    examples = torch.tensor(np.concatenate([step.examples for step in steps]))
    labels = logits_at(LENET_61706, rows - RATE * gradients, examples).argmax(1)
    found = Victims(LENET_61706, rows, RATE, gradients, examples, labels)
    return found, [Reference(step.gradient) for step in steps]


@pytest.mark.parametrize("name", MODELS)
def test_each_row_is_the_model_at_its_own_weights(name: str) -> None:
    model = model_named(name)
    random = np.random.default_rng(0)
    rows = 0.1 * random.standard_normal((2, model.layout.size)).astype(np.float32)
    examples = random.random((2, 28, 28, 1), np.float32)
    found = logits_at(model, torch.tensor(rows), torch.tensor(examples))
    for row in range(2):
        one = LocalStep(model).run(
            model.layout.unflatten(rows[row]), examples[[row]], np.zeros(1, np.int64)
        )
        np.testing.assert_allclose(found[row], one.logits[0], rtol=1e-3, atol=1e-3)


def test_loss_gradients_are_those_of_the_updated_model() -> None:
    them, _ = victims()
    found = them.loss_gradients()
    updated = weights() - np.float32(RATE) * attacked(0).gradient
    expected = LOCAL.run(
        LAYOUT.unflatten(updated), attacked(0).examples, them.labels[:1].numpy()
    ).gradient
    np.testing.assert_allclose(found[0], -RATE * expected, atol=1e-7)


@pytest.mark.parametrize("beta", [0.5, 10.0])
@pytest.mark.parametrize("verifier", [NoVerifier(), RoflL2(1e-3)])
def test_candidates_are_on_the_sphere(beta: float, verifier) -> None:  # type: ignore[no-untyped-def]
    them, references = victims()
    found = attack(them, references, verifier, beta, SHORT, rows=range(COUNT))
    assert len(found) == 3
    for submitted in found:
        moved = (submitted - them.gradients).norm(dim=1, keepdim=True)
        np.testing.assert_allclose(moved, beta * them.norms, rtol=1e-4)


def test_a_support_is_where_the_loss_depends_most() -> None:
    them, references = victims()
    slopes = them.loss_gradients()
    mask = supports(slopes, 0.01)
    assert mask.sum(1).tolist() == [617.0] * COUNT
    assert (
        slopes.abs()[mask > 0].reshape(COUNT, -1).amin(1) >= (slopes.abs() * (1 - mask)).amax(1)
    ).all()
    found = attack(them, references, NoVerifier(), 1.0, SHORT, rows=range(COUNT), support=0.01)
    for submitted in found:
        assert not ((submitted - them.gradients) * (1 - mask)).any()


def test_loss_grows_and_predictions_flip_without_a_verifier() -> None:
    them, references = victims()
    found = attack(them, references, NoVerifier(), 10.0, SHORT, rows=range(COUNT))
    for submitted in found:
        assert (them.losses(submitted) > them.losses(them.gradients)).all()
    assert them.flipped(found[0]).all()
    assert not them.flipped(them.gradients).any()


def test_a_penalty_draws_candidates_into_the_bound() -> None:
    them, references = victims()
    beta, bound = 1.0, float(them.norms.max())
    settings = PgdSettings(random_starts=0)
    free, bounded = (
        attack(them, references, verifier, beta, settings, rows=range(COUNT))[0].norm(dim=1)
        for verifier in (NoVerifier(), RoflL2(bound))
    )
    assert (free > 1.3 * bound).sum() == 2
    assert (bounded <= 1.05 * bound).all()


def test_starts_do_not_depend_on_the_batch() -> None:
    them, references = victims()
    together = attack(them, references, NoVerifier(), 1.0, SHORT, rows=range(COUNT))
    alone = attack(them.take(slice(1, 2)), references[1:2], NoVerifier(), 1.0, SHORT, rows=[1])
    for ours, theirs in zip(alone, together, strict=True):
        np.testing.assert_allclose(ours[0], theirs[1], atol=2e-3)
