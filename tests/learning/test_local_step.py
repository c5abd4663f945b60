"""The local step computes the gradient of the JAX form, and records the inputs of ReLUs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from training_support import policy

from opfl_chain.learning.errors import BatchInvalid, GradientNotFinite, PolicyUnusable
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.learning.local_step import LocalStep
from opfl_chain.learning.model import Model, relu_shapes
from opfl_chain.learning.operations.table import Operations, Recording
from opfl_chain.learning.registry import MODELS, model_named
from opfl_chain.learning.seeded import initial_parameters
from opfl_chain.protocol.policy import Policy

MODEL = LENET_61706
PARAMETERS = initial_parameters(MODEL.layout, 5)


def batch_of(model: Model, count: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    images = generator.random((count, *model.input_shape), np.float32)
    return images, generator.integers(0, model.classes, count)


def jax_gradient(model: Model, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
    def loss(parameters: dict[str, jax.Array]) -> jax.Array:
        logits = model.logits(parameters, images, Operations("jax"))
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
        return -chosen.mean()

    gradient = jax.jit(jax.grad(loss))(initial_parameters(model.layout, 5))
    return model.layout.flatten({name: np.asarray(array) for name, array in gradient.items()})


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("name", MODELS)
def test_gradient_is_that_of_the_jax_form(name: str, count: int) -> None:
    model = model_named(name)
    images, labels = batch_of(model, count)
    step = LocalStep(model, fraction_bits=40)  # finer than float32: nothing is rounded
    result = step.run(initial_parameters(model.layout, 5), images, labels)
    expected = jax_gradient(model, images, labels)
    assert result.gradient.dtype == np.float32
    distance = np.linalg.norm(result.gradient - expected) / np.linalg.norm(expected)
    assert distance < 1e-6
    assert result.pre_activations == {}


def test_step_is_taken_at_what_ring_words_hold() -> None:
    images, labels = batch_of(MODEL, 2)
    coarse = LocalStep(MODEL, fraction_bits=8)
    rounded = {name: coarse.ring.nearest(array) for name, array in PARAMETERS.items()}
    at_rounded = coarse.run(rounded, coarse.ring.nearest(images), labels).gradient
    assert np.array_equal(coarse.run(PARAMETERS, images, labels).gradient, at_rounded)
    assert not np.array_equal(LocalStep(MODEL).run(PARAMETERS, images, labels).gradient, at_rounded)


def test_gradient_of_a_certain_model_keeps_its_digits() -> None:
    """In float32, softmax minus target is a multiple of 6e-8."""
    images, _ = batch_of(MODEL, 1)
    certain = PARAMETERS | {"fc3.bias": np.where(np.arange(10) == 3, 18, 0).astype(np.float32)}
    result = LocalStep(MODEL).run(certain, images, np.array([3]))
    last = MODEL.layout.unflatten(result.gradient)["fc3.bias"].astype(np.float64)
    assert 1e-9 < np.abs(last).max() < 1e-6
    assert last[3] == pytest.approx(-np.delete(last, 3).sum(), rel=1e-6)
    assert np.delete(last, 3) == pytest.approx(np.delete(result.probabilities[0], 3), rel=1e-6)


def test_result_explains_the_gradient() -> None:
    images, labels = batch_of(MODEL, 2)
    result = LocalStep(MODEL).run(PARAMETERS, images, labels)
    assert result.logits.shape == result.probabilities.shape == (2, 10)
    np.testing.assert_allclose(result.probabilities.sum(1), 1, rtol=1e-6)
    chosen = result.probabilities[np.arange(2), labels]
    assert result.loss == pytest.approx(-np.log(chosen).mean(), rel=1e-6)
    last = MODEL.layout.unflatten(result.gradient)["fc3.bias"]
    error = (result.probabilities - np.eye(10)[labels]).mean(0)
    np.testing.assert_allclose(last, error, atol=1e-7)


@pytest.mark.parametrize("name", MODELS)
def test_pre_activations_are_those_of_the_jax_form_in_its_order(name: str) -> None:
    model = model_named(name)
    images, labels = batch_of(model, 2)
    parameters = initial_parameters(model.layout, 5)
    result = LocalStep(model).run(parameters, images, labels, pre_activations=True)
    recorder = Recording(Operations("jax"))
    model.logits(parameters, images, recorder)
    seen = recorder.pre_activations
    assert list(result.pre_activations) == list(seen) == list(relu_shapes(model))
    for layer, values in result.pre_activations.items():
        assert values.shape == relu_shapes(model, batch=2)[layer]
        np.testing.assert_allclose(values, seen[layer], atol=2e-6)
        assert np.array_equal(result.masks[layer], values > 0)
        assert 0 < result.masks[layer].mean() < 1


def test_recording_changes_nothing() -> None:
    images, labels = batch_of(MODEL, 1)
    step = LocalStep(MODEL)
    plain, recorded = (
        step.run(PARAMETERS, images, labels, pre_activations=recording)
        for recording in (False, True)
    )
    assert plain.gradient.tobytes() == recorded.gradient.tobytes()


def test_step_gives_the_same_bytes_twice_whatever_the_threads_of_the_process() -> None:
    images, labels = batch_of(MODEL, 32)
    before, gradients = torch.get_num_threads(), set()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            step = LocalStep(MODEL, torch.device("cpu"))
            gradients |= {step.run(PARAMETERS, images, labels).gradient.tobytes()}
            gradients |= {step.run(PARAMETERS, images, labels).gradient.tobytes()}
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert len(gradients) == 1


def test_gradient_encodes_by_the_policy() -> None:
    rules, (images, labels) = policy(), batch_of(MODEL, 1)
    result = LocalStep.of_policy(rules).run(PARAMETERS, images, labels)
    words = rules.fixed_point.encode(MODEL.layout.trainable.unflatten(result.gradient))
    assert np.abs(words * rules.fixed_point.quantum - result.gradient).max() <= (
        rules.fixed_point.quantum / 2
    )


def test_policy_that_does_not_fit_the_model_is_refused() -> None:
    fields = policy().model_dump(mode="json")
    fields["data"]["classes"] = 12
    with pytest.raises(PolicyUnusable, match="and 12 classes, model lenet-61706 takes"):
        LocalStep.of_policy(Policy.from_mapping(fields))


def test_gradient_that_is_not_finite_is_refused_by_name() -> None:
    images, labels = batch_of(MODEL, 1)
    weights = {**PARAMETERS, "fc3.bias": np.full(10, np.inf, np.float32)}
    with pytest.raises(GradientNotFinite, match=r"nan at conv1\.weight\[0, 0, 0, 0\]"):
        LocalStep(MODEL).run(weights, images, labels)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (np.zeros((1, 1, 28, 28), np.float32), [1], r"model lenet-61706 takes \(batch, 28, 28, 1"),
        (np.zeros((0, 28, 28, 1), np.float32), [], r"shape \(0, 28, 28, 1\)"),
        (np.zeros((1, 28, 28, 1)), [1], "dtype float64, they must be float32"),
        (np.zeros((1, 28, 28, 1), np.float32), [1, 2], "must be 1 integers"),
        (np.zeros((1, 28, 28, 1), np.float32), [1.0], "dtype float64, they must be 1 integers"),
        (np.zeros((1, 28, 28, 1), np.float32), [10], r"must be in \[0, 10\)"),
    ],
)
def test_malformed_batch_is_refused(images: np.ndarray, labels: list, message: str) -> None:
    with pytest.raises(BatchInvalid, match=message):
        LocalStep(MODEL).run(PARAMETERS, images, np.array(labels))
