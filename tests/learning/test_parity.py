"""The forms of a model compute the same logits and the same gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch_reference import LeNetModule

from opfl_chain.learning.devices import deterministic
from opfl_chain.learning.errors import LayoutMismatch
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.learning.local_step import LocalStep, gradient_of, parameter_tensors
from opfl_chain.learning.model import Model
from opfl_chain.learning.operations.table import Operations
from opfl_chain.learning.registry import MODELS, model_named
from opfl_chain.learning.seeded import initial_parameters

BATCH = 3
# Relative to the largest value. Measured: 6e-16 in float64 and 3e-7 in float32.
TOLERANCES = {"float64": 1e-12, "float32": 5e-6}


def batch_of(model: Model, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    images = generator.random((BATCH, *model.input_shape)).astype(dtype)
    return images, generator.integers(0, model.classes, BATCH)


def torch_gradient(model: Model, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    images, labels = batch_of(model, dtype)
    arrays = {name: a.astype(dtype) for name, a in initial_parameters(model.layout, 5).items()}
    tensors = parameter_tensors(model.layout, arrays)
    logits = model.logits(tensors, torch.from_numpy(images), Operations("torch"))
    loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels))
    gradient = gradient_of(loss, torch.ones_like(loss), model.layout, tensors)
    return logits.detach().numpy(), gradient


def jax_gradient(model: Model, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    images, labels = batch_of(model, dtype)
    parameters = {
        name: array.astype(dtype) for name, array in initial_parameters(model.layout, 5).items()
    }

    def loss(values: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
        logits = model.logits(values, images, Operations("jax"))
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
        return -chosen.mean(), logits

    with jax.experimental.enable_x64(dtype == "float64"):
        gradient, logits = jax.grad(loss, has_aux=True)(parameters)
        arrays = {name: np.asarray(array) for name, array in gradient.items()}
    return np.asarray(logits), model.layout.trainable.flatten(arrays)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", MODELS)
def test_torch_and_jax_agree(name: str, dtype: str) -> None:
    model, tolerance = model_named(name), TOLERANCES[dtype]
    logits, gradient = torch_gradient(model, dtype)
    other_logits, other_gradient = jax_gradient(model, dtype)
    assert gradient.dtype == other_gradient.dtype == dtype
    assert gradient.shape == (model.layout.size,)
    assert np.abs(logits - other_logits).max() <= tolerance * np.abs(logits).max()
    assert np.abs(gradient - other_gradient).max() <= tolerance * np.abs(gradient).max()


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("name", MODELS)
def test_local_step_runs_the_kernels_of_a_torch_module(name: str, batch: int) -> None:
    """To the bit: the boundaries in use were calibrated on gradients of modules."""
    model, generator = model_named(name), np.random.default_rng(1)
    assert isinstance(model, type(LENET_61706))
    images = generator.random((batch, *model.input_shape), np.float32)
    labels = generator.integers(0, model.classes, batch)
    step = LocalStep(model, torch.device("cpu"))
    parameters = initial_parameters(model.layout, 5)
    result = step.run(parameters, images, labels)
    module = LeNetModule(model)
    module.load({name: step.ring.nearest(array) for name, array in parameters.items()})
    with deterministic():
        logits = module(torch.tensor(step.ring.nearest(images)))
        difference = result.probabilities - np.eye(model.classes)[labels]
        difference[np.arange(batch), labels] = 0
        difference[np.arange(batch), labels] = -difference.sum(1)
        logits.backward(torch.tensor(difference / batch).float())
    assert logits.detach().numpy().tobytes() == result.logits.tobytes()
    gradient = model.layout.flatten(module.gradients())
    assert gradient.tobytes() == result.gradient.tobytes()


def test_parameters_pass_through_torch_unchanged() -> None:
    layout = LENET_61706.layout
    arrays = initial_parameters(layout, 9)
    tensors = parameter_tensors(layout, arrays)
    passed = {name: tensor.detach().numpy() for name, tensor in tensors.items()}
    assert layout.flatten(passed).tobytes() == layout.flatten(arrays).tobytes()


def test_tensors_do_not_change_with_the_arrays() -> None:
    layout = LENET_61706.layout
    arrays = initial_parameters(layout, 9)
    tensors = parameter_tensors(layout, arrays)
    before = arrays["fc3.bias"].copy()
    arrays["fc3.bias"] += 1
    assert np.array_equal(tensors["fc3.bias"].detach().numpy(), before)


def test_load_refuses_a_missing_array_and_a_wrong_shape() -> None:
    layout = LENET_61706.layout
    arrays = initial_parameters(layout, 0)
    with pytest.raises(LayoutMismatch, match=r"fc3.bias is of shape \(9,\)"):
        parameter_tensors(layout, {**arrays, "fc3.bias": np.zeros(9, np.float32)})
    del arrays["fc3.bias"]
    with pytest.raises(LayoutMismatch, match=r"fc3\.bias is missing"):
        parameter_tensors(layout, arrays)


def test_a_parameter_that_the_logits_do_not_depend_on_is_named() -> None:
    layout = LENET_61706.layout
    tensors = parameter_tensors(layout, initial_parameters(layout, 0))
    logits = tensors["fc3.bias"] * 2
    with pytest.raises(LayoutMismatch, match=r"conv1\.weight has no gradient"):
        gradient_of(logits, torch.ones_like(logits), layout, tensors)


def test_parameters_of_another_model_are_refused() -> None:
    others = initial_parameters(model_named("lenet-431080").layout, 0)
    with pytest.raises(LayoutMismatch, match=r"conv1\.weight"):
        parameter_tensors(LENET_61706.layout, others)
