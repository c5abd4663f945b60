"""Operations by name, and the operations of a model in one form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from opfl_chain.learning.errors import ModelError, ShapeMismatch, UnknownOperation
from opfl_chain.learning.operations.linear import AveragePool, Convolution, Dense
from opfl_chain.learning.operations.nonlinear import Relu, Softmax
from opfl_chain.learning.operations.operation import Operation
from opfl_chain.system.plugins import Registry

OPERATIONS: Registry[Operation] = Registry(
    "operation",
    "opfl_chain.operations",
    {
        "convolution": Convolution(),
        "dense": Dense(),
        "relu": Relu(),
        "average_pool": AveragePool(),
        "softmax": Softmax(),
    },
    UnknownOperation,
    lambda found: isinstance(found, Operation),
)

Form: TypeAlias = Literal["torch", "jax", "mpc"]


class Operations:
    """All operations of the table in one form: `operations.dense(x, weight, bias, name="fc1")`.

    `name` is the layer. Layers of operations that have a mask need names of their own.
    """

    def __init__(self, form: Form, **replaced: Callable[..., Any]) -> None:
        """`replaced` are functions to use instead of the table's, by name of the operation."""
        self._form = form
        self._replaced = replaced

    def apply(self, operation: str, *arrays: Any, name: str, **options: Any) -> Any:
        del name
        table = OPERATIONS[operation]
        compute = self._replaced.get(operation) or getattr(table, self._form)
        return compute(*arrays, **options)

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        if operation.startswith("_"):  # a missing attribute, as of copy or pickle
            raise AttributeError(operation)
        return partial(self.apply, operation)


class ShapeOperations(Operations):
    """Operations that track shapes only, and note which operations a model uses."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def apply(self, operation: str, *arrays: Any, name: str, **options: Any) -> Any:
        self.used.add(operation)
        shapes = [tuple(array.shape) for array in arrays]
        try:
            return of_shape(OPERATIONS[operation].shape(*shapes, **options))
        except ShapeMismatch as error:
            raise ShapeMismatch(f"{operation} {name}: {error}") from None


class Recording(Operations):
    """Operations that record the inputs of those with a mask, and apply masks instead if given."""

    def __init__(self, operations: Operations, masks: Mapping[str, Any] | None = None) -> None:
        self.pre_activations: dict[str, Any] = {}
        """The recorded inputs, by layer, in forward order."""
        self._operations = operations
        self._masks = masks

    def apply(self, operation: str, *arrays: Any, name: str, **options: Any) -> Any:
        if OPERATIONS[operation].has_mask:
            (values,) = arrays
            if name in self.pre_activations:
                raise ModelError(
                    f"{operation} {name} occurs twice: give every {operation} a name of its own"
                )
            self.pre_activations[name] = values
            if self._masks is not None:
                return OPERATIONS[operation].masked(values, self._masks[name])
        return self._operations.apply(operation, *arrays, name=name, **options)


def of_shape(shape: Iterable[int]) -> Any:
    """Return an array of this shape that stores a single number."""
    return np.broadcast_to(np.float32(0), tuple(shape))
