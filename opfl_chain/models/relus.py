"""Which ReLUs a model has, in the order of its JAX form."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from opfl_chain.models.model import Model

Shaped = NDArray[np.float32]


def relu_shapes(model: Model, batch: int = 1) -> dict[str, tuple[int, ...]]:
    """The shape of what each ReLU takes, by layer, in forward order."""
    parameters = {each.name: _of_shape(*each.shape) for each in model.layout}
    recorder = _ShapesOnly()
    model.logits(parameters, _of_shape(batch, *model.input_shape), recorder)
    return recorder.relus


def relu_units(model: Model, batch: int = 1) -> int:
    """How many values of a batch go into ReLUs."""
    return sum(math.prod(shape) for shape in relu_shapes(model, batch).values())


class _ShapesOnly:
    """`Operations` that compute nothing, so that a client need not load JAX to count."""

    def __init__(self) -> None:
        self.relus: dict[str, tuple[int, ...]] = {}

    def convolution(
        self, examples: Shaped, weight: Shaped, bias: Shaped, *, padding: int, name: str
    ) -> Shaped:
        del bias, name
        batch, height, width, _ = examples.shape
        lost = weight.shape[0] - 1 - 2 * padding
        return _of_shape(batch, height - lost, width - lost, weight.shape[-1])

    def dense(self, examples: Shaped, weight: Shaped, bias: Shaped, *, name: str) -> Shaped:
        del bias, name
        return _of_shape(examples.shape[0], weight.shape[-1])

    def relu(self, values: Shaped, *, name: str) -> Shaped:
        self.relus[name] = values.shape
        return values

    def average_pool(self, images: Shaped, *, name: str) -> Shaped:
        del name
        batch, height, width, channels = images.shape
        return _of_shape(batch, height // 2, width // 2, channels)


def _of_shape(*shape: int) -> Shaped:
    """An array of one number, which takes no memory whatever its shape."""
    shaped: Shaped = np.broadcast_to(np.float32(0), shape)
    return shaped
