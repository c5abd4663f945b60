"""The canonical order of a model's parameters, the one thing both executions must agree on.

The flat vector of a model is its parameters in the order of its layout, each flattened with the
last axis fastest. Shapes are those of the JAX function: a convolution is (height, width, in, out)
and a dense layer (in, out), so that activations (batch, height, width, channels) times a weight is
a plain matrix product in MPC. `torch_axes` says how torch permutes the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from opfl_chain.models.errors import LayoutMismatch

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Parameter:
    """One named array of a model. The name is the one that the torch module gives it."""

    name: str
    shape: tuple[int, ...]
    bound: float
    """Initial values are uniform in [-bound, bound)."""
    torch_axes: tuple[int, ...] = ()
    """torch holds `array.transpose(torch_axes)`; empty where it holds the array as it is."""
    trainable: bool = True
    """A frozen parameter is public, has no gradient, and enters a program as an input."""

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def to_torch(self, array: Array) -> Array:
        return array.transpose(self.torch_axes) if self.torch_axes else array

    def from_torch(self, array: Array) -> Array:
        return array.transpose(np.argsort(self.torch_axes)) if self.torch_axes else array


def convolution(name: str, side: int, inputs: int, outputs: int) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a convolution with square filters."""
    bound = 1 / math.sqrt(side * side * inputs)
    return (
        Parameter(f"{name}.weight", (side, side, inputs, outputs), bound, (3, 2, 0, 1)),
        Parameter(f"{name}.bias", (outputs,), bound),
    )


def dense(name: str, inputs: int, outputs: int) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a fully connected layer."""
    bound = 1 / math.sqrt(inputs)
    return (
        Parameter(f"{name}.weight", (inputs, outputs), bound, (1, 0)),
        Parameter(f"{name}.bias", (outputs,), bound),
    )


@dataclass(frozen=True)
class ParameterLayout:
    """Parameters in canonical order. A committed gradient is a vector of the `trainable` layout."""

    parameters: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.parameters):
            raise LayoutMismatch(f"parameter names are not unique: {', '.join(self.names)}")

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.parameters)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {parameter.name: parameter.shape for parameter in self.parameters}

    @cached_property
    def size(self) -> int:
        return sum(parameter.size for parameter in self.parameters)

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Where each parameter lies in the flat vector."""
        places, start = {}, 0
        for parameter in self.parameters:
            places[parameter.name] = slice(start, start + parameter.size)
            start += parameter.size
        return places

    @cached_property
    def trainable(self) -> ParameterLayout:
        return ParameterLayout(tuple(p for p in self.parameters if p.trainable))

    @cached_property
    def frozen(self) -> ParameterLayout:
        return ParameterLayout(tuple(p for p in self.parameters if not p.trainable))

    def flatten(self, arrays: Mapping[str, Array]) -> Array:
        """The flat vector of named numpy arrays. All of one dtype, none missing, none too many."""
        if set(arrays) != set(self.names):
            missing, extra = set(self.names) - set(arrays), set(arrays) - set(self.names)
            raise LayoutMismatch(
                f"arrays do not fit the layout: missing {sorted(missing) or 'none'},"
                f" not a parameter {sorted(extra) or 'none'}"
            )
        for name, shape in self.shapes.items():
            if arrays[name].shape != shape:
                raise LayoutMismatch(f"{name} has shape {arrays[name].shape}, it must be {shape}")
        dtypes = {str(array.dtype) for array in arrays.values()}
        if len(dtypes) > 1:
            raise LayoutMismatch(f"arrays have dtypes {', '.join(sorted(dtypes))}, use one")
        if not self.parameters:
            return np.zeros(0, np.float32)
        return np.concatenate([arrays[name].reshape(-1) for name in self.names])

    def unflatten(self, vector: Any) -> dict[str, Any]:
        """Named arrays of a flat vector, which may be a traced JAX array: it is sliced only."""
        if vector.shape != (self.size,):
            raise LayoutMismatch(
                f"the vector has shape {vector.shape}, this layout has {self.size:,} parameters"
            )
        return {name: vector[self.slices[name]].reshape(self.shapes[name]) for name in self.names}

    def locate(self, index: int) -> str:
        """Name a coordinate of the flat vector, as errors do: `conv2.weight[0, 4, 3, 15]`."""
        for name, place in self.slices.items():
            if place.start <= index < place.stop:
                position = np.unravel_index(index - place.start, self.shapes[name])
                return f"{name}[{', '.join(str(int(axis)) for axis in position)}]"
        raise LayoutMismatch(f"index {index} is not in a vector of {self.size:,} parameters")
