"""The interface of models, and facts that follow from their shapes alone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from opfl_chain.learning.errors import ShapeMismatch
from opfl_chain.learning.layout import ParameterLayout
from opfl_chain.learning.operations.table import Operations, Recording, ShapeOperations, of_shape

Option = bool | int | float | str


class Model(ABC):
    """A classifier, written once over the table of operations.

    A policy names a model and gives its options; `registry.model_of` makes the model of a policy.
    """

    name: str
    """The name that policies give."""
    input_shape: tuple[int, ...]
    """The shape of one example, without the batch axis."""
    classes: int

    @property
    def options(self) -> Mapping[str, Option]:
        """The options that a policy must give for this model; empty if all are the defaults."""
        return {}

    @property
    @abstractmethod
    def layout(self) -> ParameterLayout:
        """The parameters in canonical order."""

    @abstractmethod
    def logits(self, parameters: Mapping[str, Any], examples: Any, operations: Operations) -> Any:
        """Compute the logits, (batch, classes), from parameters of the layout's shapes.

        Use `operations`, and what arrays of all frameworks share: their shape, sums, products and
        `reshape`.
        """


def relu_shapes(model: Model, batch: int = 1) -> dict[str, tuple[int, ...]]:
    """Return the input shape of each ReLU, by layer, in forward order."""
    traced, _ = _traced(model, batch)
    return {name: values.shape for name, values in traced.pre_activations.items()}


def relu_units(model: Model, batch: int = 1) -> int:
    """Return the number of values of a batch that go into ReLUs."""
    return sum(math.prod(shape) for shape in relu_shapes(model, batch).values())


def operations_of(model: Model) -> set[str]:
    """Return the names of the operations that a model uses."""
    return _traced(model, 1)[1].used


def _traced(model: Model, batch: int) -> tuple[Recording, ShapeOperations]:
    shapes = ShapeOperations()
    recording = Recording(shapes)
    parameters = {each.name: of_shape(each.shape) for each in model.layout}
    logits = model.logits(parameters, of_shape((batch, *model.input_shape)), recording)
    if logits.shape != (batch, model.classes):
        raise ShapeMismatch(
            f"the logits of model {model.name} have shape {logits.shape}, expected"
            f" {(batch, model.classes)}"
        )
    return recording, shapes
