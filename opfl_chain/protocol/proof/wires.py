"""Wires: integers that are affine in the secret words of a statement, with their largest magnitude.

A wire is a recipe. It can be computed from the words themselves, as the client does, and from one
component of their shares, as members do: the components of a wire add up to it. Magnitudes follow
from those of the words, so that a statement can show that nothing wraps around modulo p.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from opfl_chain.numerics.field import INTEGER_LIMIT, Elements
from opfl_chain.protocol.errors import ProtocolError

Shape: TypeAlias = tuple[int, ...]
Integers: TypeAlias = npt.NDArray[np.int64]
Compute: TypeAlias = Callable[[Elements, Sequence[Elements]], Elements]
"""Computes a wire from the element that stands for one, and from the wires that it depends on."""

PADDING: Final = -1
"""The index of a zero in :meth:`Wire.gather`."""


class StatementError(ProtocolError):
    """A statement cannot be made: shapes, scales or magnitudes do not fit."""


@dataclass(frozen=True, eq=False)
class Wire:
    """An array of integers with ``bits`` fraction bits, affine in the secret words."""

    kind: str
    """The operation, for the hash of a statement."""
    shape: Shape
    bits: int
    bound: int
    """The largest magnitude of any of the integers."""
    parents: tuple[Wire, ...]
    compute: Compute
    detail: bytes = b""
    """The public data of the operation, for the hash of a statement."""

    @property
    def size(self) -> int:
        """The number of integers."""
        return math.prod(self.shape)

    def reshape(self, *shape: int) -> Wire:
        """Arrange the integers in another shape; one length may be -1."""
        if -1 in shape:
            known = -math.prod(shape)
            shape = tuple(self.size // known if length == -1 else length for length in shape)
        if math.prod(shape) != self.size:
            raise StatementError(f"{self.size:,} integers cannot be arranged as {shape}")
        return self._derived("reshape", shape, lambda one, found: found[0].reshape(*shape))

    def gather(self, index: npt.NDArray[np.intp]) -> Wire:
        """Select by positions in the flat array; `PADDING` selects a zero."""
        detail = np.ascontiguousarray(index, "<i8").tobytes()

        def compute(one: Elements, found: Sequence[Elements]) -> Elements:
            padded = Elements.concatenate([found[0], Elements.zeros((1,))])
            return padded[index]

        return self._derived("gather", index.shape, compute, detail=detail)

    def broadcast(self, shape: Shape) -> Wire:
        """Repeat along axes of length one."""
        found = np.broadcast_to(np.arange(self.size).reshape(self.shape), shape)
        return self if shape == self.shape else self.gather(found)

    def sum(self, axis: int) -> Wire:
        """Add up along one axis."""
        axis %= len(self.shape)
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        bound = self.bound * self.shape[axis]
        return self._derived(
            "sum", shape, lambda one, found: found[0].sum(axis), bound, bytes([axis])
        )

    def times(self, factor: int) -> Wire:
        """Multiply by a public integer, as a value: the fraction bits stay."""
        return self._scaled(factor, self.bits)

    def finer(self, bits: int) -> Wire:
        """Represent the same values with more fraction bits."""
        if bits < self.bits:
            raise StatementError(f"a wire of {self.bits} fraction bits cannot be shown with {bits}")
        return self if bits == self.bits else self._scaled(1 << (bits - self.bits), bits)

    def divided(self, bits: int) -> Wire:
        """Divide by 2^bits exactly: the same integers, read with more fraction bits."""
        return replace(self, bits=self.bits + bits)

    def matrix(self, integers: Integers, bits: int) -> Wire:
        """Multiply rows (m, k) by public integers (k, n) of ``bits`` fraction bits."""
        if len(self.shape) != 2 or self.shape[1] != integers.shape[0]:
            raise StatementError(f"cannot multiply {self.shape} by {integers.shape}")
        if (largest := int(np.abs(integers).max())) >= INTEGER_LIMIT:
            raise StatementError(
                f"public factors are up to {largest * 2.0**-bits:g}, they must be below"
                f" {INTEGER_LIMIT * 2.0**-bits:g} with {bits} fraction bits: weights are too large"
            )
        columns = np.abs(integers).sum(0)  # below 2^63 of fewer than 2^31 rows
        return self._derived(
            "matrix",
            (self.shape[0], integers.shape[1]),
            lambda one, found: found[0].times_integers(integers),
            self.bound * int(columns.max()),
            np.ascontiguousarray(integers, "<i8").tobytes(),
            bits=self.bits + bits,
        )

    def bounded(self, bound: int) -> Wire:
        """Return the same wire, of which other equations show that it stays within a bound."""
        return replace(self, bound=min(self.bound, bound))

    def __add__(self, other: Wire) -> Wire:
        self._same_form(other)
        bound = self.bound + other.bound
        return Wire(
            "add",
            self.shape,
            self.bits,
            bound,
            (self, other),
            lambda one, found: found[0] + found[1],
        )

    def __sub__(self, other: Wire) -> Wire:
        return self + other.times(-1)

    def __mul__(self, other: Wire) -> Quadratic:
        return Quadratic(None, (Product(self, other),), self.shape, self.bits + other.bits)

    def plus(self, integers: Integers | int) -> Wire:
        """Add public integers, which are in the wire's own quanta."""
        return self + constant(integers, self.shape, self.bits)

    @property
    def quadratic(self) -> Quadratic:
        """The wire as an expression without products."""
        return Quadratic(self, (), self.shape, self.bits)

    def _scaled(self, factor: int, bits: int) -> Wire:
        return self._derived(
            "scale",
            self.shape,
            lambda one, found: found[0] * factor,
            self.bound * abs(factor),
            str(factor).encode(),
            bits=bits,
        )

    def _same_form(self, other: Wire) -> None:
        if (self.shape, self.bits) != (other.shape, other.bits):
            raise StatementError(
                f"a wire of shape {self.shape} with {self.bits} fraction bits cannot be added to"
                f" one of shape {other.shape} with {other.bits}"
            )

    def _derived(
        self,
        kind: str,
        shape: Shape,
        compute: Compute,
        bound: int | None = None,
        detail: bytes = b"",
        *,
        bits: int | None = None,
    ) -> Wire:
        return Wire(
            kind,
            shape,
            self.bits if bits is None else bits,
            self.bound if bound is None else bound,
            (self,),
            compute,
            detail,
        )


@dataclass(frozen=True, eq=False)
class Product:
    """A public multiple of the elementwise product of two wires of one shape.

    It is added up over all trailing axes that the expression does not have.
    """

    left: Wire
    right: Wire
    factor: int = 1

    def __post_init__(self) -> None:
        if self.left.shape != self.right.shape:
            raise StatementError(f"cannot multiply {self.left.shape} by {self.right.shape}")


@dataclass(frozen=True, eq=False)
class Quadratic:
    """A wire plus products of wires, all with the same fraction bits."""

    linear: Wire | None
    products: tuple[Product, ...]
    shape: Shape
    bits: int
    limit: int | None = None
    """A largest magnitude that other equations show."""

    @property
    def bound(self) -> int:
        """The largest magnitude of the sum."""
        return self._bound if self.limit is None else min(self._bound, self.limit)

    @property
    def _bound(self) -> int:
        """The largest magnitude that follows from those of the wires."""
        total = self.linear.bound if self.linear else 0
        for each in self.products:
            summed = math.prod(each.left.shape[len(self.shape) :])
            total += summed * abs(each.factor) * each.left.bound * each.right.bound
        return total

    @property
    def quadratic(self) -> Quadratic:
        """The expression itself, as wires have one."""
        return self

    def sum(self, axis: int = -1) -> Quadratic:
        """Add up along the last axis."""
        if axis not in (-1, len(self.shape) - 1):
            raise StatementError("an expression is added up along its last axis only")
        linear = self.linear.sum(-1) if self.linear else None
        return Quadratic(linear, self.products, self.shape[:-1], self.bits)

    def reshape(self, *shape: int) -> Quadratic:
        """Arrange the integers in another shape; one length may be -1."""
        found = np.arange(math.prod(self.shape)).reshape(shape).shape
        return self._rearranged(found, lambda wire, ending: wire.reshape(*found, *ending))

    def gather(self, index: npt.NDArray[np.intp]) -> Quadratic:
        """Select by positions in the flat array; `PADDING` selects a zero."""

        def selected(wire: Wire, ending: Shape) -> Wire:
            added = math.prod(ending)
            places = index[..., None] * added + np.arange(added)
            places[index == PADDING] = PADDING
            return wire.gather(places.reshape(*index.shape, *ending))

        return self._rearranged(index.shape, selected)

    def divided(self, bits: int) -> Quadratic:
        """Divide by 2^bits exactly: the same integers, read with more fraction bits."""
        return replace(self, bits=self.bits + bits)

    def _rearranged(self, shape: Shape, of: Callable[[Wire, Shape], Wire]) -> Quadratic:
        """Rearrange all wires; products keep the trailing axes that they are added up over."""
        own = len(self.shape)
        products = tuple(
            Product(
                of(each.left, each.left.shape[own:]),
                of(each.right, each.right.shape[own:]),
                each.factor,
            )
            for each in self.products
        )
        linear = of(self.linear, ()) if self.linear else None
        return Quadratic(linear, products, shape, self.bits)

    def times(self, factor: int) -> Quadratic:
        """Multiply by a public integer."""
        products = tuple(replace(each, factor=each.factor * factor) for each in self.products)
        linear = self.linear.times(factor) if self.linear else None
        limit = None if self.limit is None else self.limit * abs(factor)
        return replace(self, linear=linear, products=products, limit=limit)

    def bounded(self, limit: int) -> Quadratic:
        """Return the same expression, of which other equations show that it is within a bound."""
        return replace(self, limit=limit)

    def finer(self, bits: int) -> Quadratic:
        """Represent the same values with more fraction bits."""
        return replace(self.times(1 << (bits - self.bits)), bits=bits)

    def __add__(self, other: Quadratic) -> Quadratic:
        if (self.shape, self.bits) != (other.shape, other.bits):
            raise StatementError(
                f"an expression of shape {self.shape} with {self.bits} fraction bits cannot be"
                f" added to one of shape {other.shape} with {other.bits}"
            )
        linear = self.linear or other.linear
        if self.linear is not None and other.linear is not None:
            linear = _read(self.linear, self.bits) + _read(other.linear, self.bits)
        products, limit = self.products + other.products, self.bound + other.bound
        return Quadratic(linear, products, self.shape, self.bits, limit)

    def __sub__(self, other: Quadratic) -> Quadratic:
        return self + other.times(-1)


def _read(wire: Wire, bits: int) -> Wire:
    """Return a wire whose integers are read with these fraction bits."""
    return replace(wire, bits=bits)


def constant(integers: Integers | int, shape: Shape, bits: int) -> Wire:
    """Return a wire of public integers."""
    given = np.asarray(integers, object)
    flat = [int(each) for each in given.ravel()]
    elements = Elements.of_python(flat).reshape(*given.shape).broadcast_to(shape)
    texts = np.array([str(each) for each in flat], object).reshape(given.shape)
    return Wire(
        "constant",
        shape,
        bits,
        max(map(abs, flat)),
        (),
        lambda one, found: elements * one,
        " ".join(np.broadcast_to(texts, shape).ravel().tolist()).encode(),
    )


def leaf(kind: str, name: str, shape: Shape, bits: int, bound: int) -> Wire:
    """Return a wire whose value is given: words, or a component of committed ring words."""

    def missing(one: Elements, found: Any) -> Elements:
        raise StatementError(f"{kind} {name} has no value yet")

    return Wire(kind, shape, bits, bound, (), missing, name.encode())
