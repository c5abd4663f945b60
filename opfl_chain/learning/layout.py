"""The canonical order of a model's parameters, on which both executions must agree.

The flat vector of a model is its parameters in the order of its layout, each flattened with the
last axis fastest. A convolution is (height, width, in, out) and a dense layer (in, out), so that
activations (batch, height, width, channels) times a weight is a plain matrix product in MPC.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from opfl_chain.learning.errors import LayoutMismatch, OptionsInvalid

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Parameter:
    """One named array of a model."""

    name: str
    shape: tuple[int, ...]
    bound: float
    """Initial values are uniform in [-bound, bound)."""
    trainable: bool = True
    """A frozen parameter is public, has no gradient, and enters a program as an input."""

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def convolution(name: str, side: int, inputs: int, outputs: int) -> tuple[Parameter, Parameter]:
    """Return the weight and the bias of a convolution with square filters."""
    bound = 1 / math.sqrt(side * side * inputs)
    return (
        Parameter(f"{name}.weight", (side, side, inputs, outputs), bound),
        Parameter(f"{name}.bias", (outputs,), bound),
    )


def dense(name: str, inputs: int, outputs: int) -> tuple[Parameter, Parameter]:
    """Return the weight and the bias of a fully connected layer."""
    bound = 1 / math.sqrt(inputs)
    return (
        Parameter(f"{name}.weight", (inputs, outputs), bound),
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
        """The slice of each parameter in the flat vector."""
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

    def freeze(self, names: str) -> ParameterLayout:
        """Return this layout with parameters frozen.

        Names are separated by commas. A name is a parameter's (`conv1.weight`), or a layer's for
        all parameters of the layer (`conv1`).
        """
        if not isinstance(names, str):  # a policy may give numbers too
            raise OptionsInvalid(f"frozen is {names!r}, it must be names separated by commas")
        chosen = [name.strip() for name in names.split(",") if name.strip()]
        for name in chosen:
            if not any(_belongs(each.name, name) for each in self.parameters):
                raise OptionsInvalid(
                    f"frozen names {name!r}, which is not a layer or parameter of the model. Its"
                    f" parameters are: {', '.join(self.names)}."
                )
        frozen = ParameterLayout(
            tuple(
                replace(each, trainable=False)
                if any(_belongs(each.name, name) for name in chosen)
                else each
                for each in self.parameters
            )
        )
        if not frozen.trainable.parameters:
            raise OptionsInvalid("frozen names all parameters: at least one must be trained")
        return frozen

    def trainable_part(self, vector: Array) -> Array:
        """Return the part of a flat vector of all parameters that is trained."""
        return vector if self._all_trainable else vector[self.trainable_indices]

    def with_trainable_part(self, vector: Array, part: Array) -> Array:
        """Return a flat vector of all parameters whose trained part is replaced."""
        if self._all_trainable:
            return part
        merged = vector.copy()
        merged[self.trainable_indices] = part
        return merged

    @cached_property
    def trainable_indices(self) -> npt.NDArray[np.int64]:
        """The places of trainable parameters in the flat vector of all."""
        places = [np.arange(self.size)[self.slices[name]] for name in self.trainable.names]
        return np.concatenate(places) if places else np.zeros(0, np.int64)

    @property
    def _all_trainable(self) -> bool:
        return self.trainable.size == self.size

    def flatten(self, arrays: Mapping[str, Array]) -> Array:
        """Return the flat vector of exactly the layout's named numpy arrays, all of one dtype."""
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
        """Return the named arrays of a flat vector, which may be a traced JAX array."""
        if vector.shape != (self.size,):
            raise LayoutMismatch(
                f"the vector has shape {vector.shape}, this layout has {self.size:,} parameters"
            )
        return {name: vector[self.slices[name]].reshape(self.shapes[name]) for name in self.names}

    def locate(self, index: int) -> str:
        """Name a coordinate of the flat vector for errors: `conv2.weight[0, 4, 3, 15]`."""
        for name, place in self.slices.items():
            if place.start <= index < place.stop:
                position = np.unravel_index(index - place.start, self.shapes[name])
                return f"{name}[{', '.join(str(int(axis)) for axis in position)}]"
        raise LayoutMismatch(f"index {index} is not in a vector of {self.size:,} parameters")


def _belongs(parameter: str, name: str) -> bool:
    return parameter == name or parameter.startswith(f"{name}.")
