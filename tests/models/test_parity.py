"""The two forms of a model compute the same logits and the same gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from opfl_chain.models.errors import LayoutMismatch
from opfl_chain.models.float_operations import FloatOperations
from opfl_chain.models.initialisation import initial_parameters
from opfl_chain.models.lenet import LENET_61706
from opfl_chain.models.model import Model
from opfl_chain.models.registry import MODELS
from opfl_chain.models.torch_parameters import (
    gradient_arrays,
    load_parameters,
    parameter_arrays,
)

BATCH = 3
# Relative to the largest value. Measured: 6e-16 in float64 and 3e-7 in float32.
TOLERANCES = {"float64": 1e-12, "float32": 5e-6}


def batch_of(model: Model, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    images = generator.random((BATCH, *model.input_shape)).astype(dtype)
    return images, generator.integers(0, model.classes, BATCH)


def torch_gradient(model: Model, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    images, labels = batch_of(model, dtype)
    module = model.torch_module().to(getattr(torch, dtype))
    load_parameters(module, model.layout, initial_parameters(model.layout, 5))
    logits = module(torch.from_numpy(images))
    torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels)).backward()
    gradient = model.layout.trainable.flatten(gradient_arrays(module, model.layout))
    return logits.detach().numpy(), gradient


def jax_gradient(model: Model, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    images, labels = batch_of(model, dtype)
    parameters = {
        name: array.astype(dtype) for name, array in initial_parameters(model.layout, 5).items()
    }

    def loss(values: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
        logits = model.logits(values, images, FloatOperations())
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
        return -chosen.mean(), logits

    with jax.experimental.enable_x64(dtype == "float64"):
        gradient, logits = jax.grad(loss, has_aux=True)(parameters)
        arrays = {name: np.asarray(array) for name, array in gradient.items()}
    return np.asarray(logits), model.layout.trainable.flatten(arrays)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", MODELS)
def test_torch_and_jax_agree(name: str, dtype: str) -> None:
    model, tolerance = MODELS[name], TOLERANCES[dtype]
    logits, gradient = torch_gradient(model, dtype)
    other_logits, other_gradient = jax_gradient(model, dtype)
    assert gradient.dtype == other_gradient.dtype == dtype
    assert gradient.shape == (model.layout.size,)
    assert np.abs(logits - other_logits).max() <= tolerance * np.abs(logits).max()
    assert np.abs(gradient - other_gradient).max() <= tolerance * np.abs(gradient).max()


def test_parameters_pass_through_torch_unchanged() -> None:
    layout = LENET_61706.layout
    module = LENET_61706.torch_module()
    arrays = initial_parameters(layout, 9)
    load_parameters(module, layout, arrays)
    assert layout.flatten(parameter_arrays(module, layout)).tobytes() == (
        layout.flatten(arrays).tobytes()
    )


def test_a_read_gradient_does_not_change_with_the_module() -> None:
    layout = LENET_61706.layout
    module = LENET_61706.torch_module()
    arrays = parameter_arrays(module, layout)
    before = arrays["fc3.bias"].copy()
    with torch.no_grad():
        module.get_parameter("fc3.bias").add_(1)
    assert np.array_equal(arrays["fc3.bias"], before)


def test_load_refuses_a_missing_array_and_a_wrong_shape() -> None:
    layout, module = LENET_61706.layout, LENET_61706.torch_module()
    arrays = initial_parameters(layout, 0)
    with pytest.raises(LayoutMismatch, match=r"fc3.bias is of shape \(9,\)"):
        load_parameters(module, layout, {**arrays, "fc3.bias": np.zeros(9, np.float32)})
    del arrays["fc3.bias"]
    with pytest.raises(LayoutMismatch, match=r"fc3\.bias is missing"):
        load_parameters(module, layout, arrays)


def test_gradient_before_backward_says_so() -> None:
    with pytest.raises(LayoutMismatch, match=r"call backward\(\) first"):
        gradient_arrays(LENET_61706.torch_module(), LENET_61706.layout)


def test_a_module_of_another_model_is_refused() -> None:
    with pytest.raises(LayoutMismatch, match=r"fc3\.bias"):
        parameter_arrays(MODELS["lenet-431080"].torch_module(), LENET_61706.layout)
