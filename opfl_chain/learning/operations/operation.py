"""The interface of an operation, and helpers to implement one.

An operation has one method for each form in which a model can run. Frameworks are imported inside
the methods: a client does without JAX, a member without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.learning.errors import FormMissing, ShapeMismatch
from opfl_chain.protocol.proof.statement import Builder
from opfl_chain.protocol.proof.wires import Quadratic, Wire

Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PublicParameter:
    """A parameter as the ring holds it."""

    name: str
    integers: NDArray[np.int64]
    bits: int
    """The fraction bits of the integers."""
    trainable: bool

    @property
    def shape(self) -> Shape:
        return self.integers.shape


@dataclass(frozen=True)
class Layer:
    """The place of an operation in a statement."""

    name: str
    builder: Builder

    def gradient(self, parameter: PublicParameter, left: Wire | None, right: Wire) -> None:
        """State the gradient by a parameter: left^T right, or the column sums of right."""
        if parameter.trainable:
            self.builder.add_gradient(parameter.name, left, right)


@dataclass(frozen=True, eq=False)
class Proved:
    """The result of an operation in a statement, and the step back from the result's errors."""

    result: Wire | Quadratic
    """A result with products is rounded where an operation needs a wire."""
    backward: Callable[[Wire], Sequence[Wire]]
    """Maps the errors of the result to those of the activations, in their order."""


class Operation:
    """One operation of models.

    Arrays come first and options, if any, by name. All forms take arrays of the same shapes, whose
    first axis is the batch unless they are parameters. They compute the same function with the same
    gradients, up to rounding.
    """

    has_mask = False
    """True if the operation decides by comparisons that a client's advice can replace."""
    takes_products = False
    """True if the form `prove` takes expressions with products as well as wires."""

    def shape(self, *shapes: Any, **options: Any) -> Shape:
        """Return the shape of the result for arrays of these shapes; raise `ShapeMismatch`."""
        raise FormMissing(self, "shape")

    def torch(self, *tensors: Any, **options: Any) -> Any:
        """Compute in floating point with torch: the local step."""
        raise FormMissing(self, "torch")

    def jax(self, *arrays: Any, **options: Any) -> Any:
        """Compute in floating point with JAX: the reference for MPC."""
        raise FormMissing(self, "jax")

    def mpc(self, *arrays: Any, **options: Any) -> Any:
        """Compute with JAX for SPU, on secret activations and public parameters.

        Costs differ from a GPU's. A comparison or a secret product takes messages, a division takes
        dozens, and SPU spends about 0.2 ms to dispatch any operation. Products with public
        parameters are local except for one truncation.
        """
        return self.jax(*arrays, **options)

    def prove(self, layer: Layer, *arrays: Any, **options: Any) -> Proved:
        """State the operation as equations between words that a client advises.

        Activations are wires, parameters are public integers (`PublicParameter`).
        """
        raise FormMissing(self, "prove")

    def masked(self, values: Any, mask: Any) -> Any:
        """Follow a mask of the input's shape instead of comparing, in any framework."""
        raise FormMissing(self, "masked")


def require(fits: bool, expected: str, *shapes: Shape) -> None:
    """Raise `ShapeMismatch` unless the shapes fit."""
    if not fits:
        raise ShapeMismatch(
            f"arrays have shapes {', '.join(map(str, shapes))}, expected {expected}"
        )


@cache
def with_gradient(
    forward: Callable[..., tuple[Any, Any]], backward: Callable[..., tuple[Any, ...]]
) -> Callable[..., Any]:
    """Return a JAX function with a gradient of its own.

    `forward` returns the result and what to keep of it, `backward` maps what was kept and the
    cotangent to the gradients of all arguments.
    """
    import jax

    @jax.custom_vjp
    def function(*arrays: Any) -> Any:
        return forward(*arrays)[0]

    function.defvjp(forward, backward)
    return function
