"""Which ReLUs a model has, in the order of its JAX form."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from opfl_chain.models.float_operations import FloatOperations
from opfl_chain.models.model import Model


def relu_shapes(model: Model, batch: int = 1) -> dict[str, tuple[int, ...]]:
    """The shape of what each ReLU takes, by layer, in forward order."""
    shapes: dict[str, tuple[int, ...]] = {}

    class Recorder(FloatOperations):
        def relu(self, values: jax.Array, *, name: str) -> jax.Array:
            shapes[name] = tuple(values.shape)
            return super().relu(values, name=name)

    def traced(parameters: dict[str, Any], examples: Any) -> Any:
        return model.logits(parameters, examples, Recorder())

    jax.eval_shape(
        traced,
        {each.name: np.empty(each.shape, np.float32) for each in model.layout},
        np.empty((batch, *model.input_shape), np.float32),
    )
    return shapes


def relu_units(model: Model, batch: int = 1) -> int:
    """How many values of a batch go into ReLUs."""
    return sum(math.prod(shape) for shape in relu_shapes(model, batch).values())
