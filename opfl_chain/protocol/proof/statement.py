"""The language of relations: the words that a client advises, and the equations that they satisfy.

Every equation is quadratic in the words. It holds exactly, or up to rounding: a rounded equation
has a quantum, and its residual is at most half of it. `Builder` collects words and equations; a
model's operations call it. The result is a statement, which client and members derive from the same
policy and weights.

Words are shown to be small integers by random projections, so every wire has a largest magnitude,
and a builder refuses an equation that could wrap around modulo p. `closing.seal` adds the words and
equations that compare the gradient, and those that show residuals and words to be small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeAlias

import numpy as np

from opfl_chain.numerics.field import MODULUS, Elements
from opfl_chain.protocol.proof.wires import Quadratic, Shape, StatementError, Wire, constant, leaf

RING_BITS: Final = 64
LAST_STAGE: Final = 3
"""The stage of binary digits, which depend on all other words."""
_DIGITS: Final = 30

SLACK_QUANTA: Final = 1 << 16
"""More quanta than the residual of any rounded equation can reach: `closing.seal` checks it."""


class Rules(Protocol):
    """The numerical rules of a policy for proofs."""

    @property
    def value_bits(self) -> int:
        """The fraction bits of activations."""

    @property
    def error_bits(self) -> int:
        """The fraction bits of back-propagated errors."""

    @property
    def unit_bits(self) -> int:
        """The fraction bits of probabilities, and the bits of half of the largest quantum."""

    @property
    def word_bits(self) -> int:
        """The bits of the bound on projections of words, which shows that words are small."""

    @property
    def range_bits(self) -> int:
        """The integer bits of values that go into ReLUs."""

    @property
    def projections(self) -> int:
        """The number of random projections of each kind."""


Values: TypeAlias = Callable[[Wire], Elements]
"""Returns the integers of a wire, of which all words are known by now."""
Fill: TypeAlias = Callable[[Values], Elements]
"""Computes words from values that are known already: how an honest client advises them."""


@dataclass(frozen=True, eq=False)
class Words:
    """A group of words that the client advises."""

    name: str
    wire: Wire
    fill: Fill
    kind: str = "small"
    """`small` integers, `bits` that are zero or one by an equation, or `free` field elements."""
    stage: int = 0
    """Words of a later stage depend on random coins that are drawn after the earlier stages."""


@dataclass(frozen=True, eq=False)
class Equation:
    """An expression that is zero, or within half a quantum of zero if the quantum is not zero."""

    name: str
    expression: Quadratic
    quantum: int
    gradient_factor: int = 0
    """The multiple of the k-th projection of the step's gradient in the k-th equation."""
    least: int = 0
    """The least that is left over where this equation shows a sign, and the sign is wrong."""

    @property
    def size(self) -> int:
        """The number of equations of this name."""
        return math.prod(self.expression.shape)


@dataclass(frozen=True, eq=False)
class Ring:
    """Committed ring words, of which members hold components modulo 2^64."""

    name: str
    wire: Wire
    start: int
    """The place of the first word in the committed vector."""


@dataclass(frozen=True, eq=False)
class GradientTerm:
    """A part of the gradient by one parameter: left^T right, or the column sums of right."""

    parameter: str
    left: Wire | None
    """The layer's input, (rows, inputs); None for a bias."""
    right: Wire
    """The errors, (rows, outputs)."""

    @property
    def bits(self) -> int:
        """The fraction bits of this part."""
        return self.right.bits + (self.left.bits if self.left else 0)

    @property
    def bound(self) -> int:
        """The largest magnitude of a coordinate."""
        return self.right.shape[0] * self.right.bound * (self.left.bound if self.left else 1)

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.right.shape[1] * (self.left.shape[1] if self.left else 1)


@dataclass
class Builder:
    """Collects the words and equations of a statement."""

    rules: Rules
    words: list[Words] = field(default_factory=list)
    equations: list[Equation] = field(default_factory=list)
    rings: list[Ring] = field(default_factory=list)
    small: list[Wire] = field(default_factory=list)
    gradient: dict[str, GradientTerm] = field(default_factory=dict)
    stage: int = 0

    # --- words

    @property
    def word_bound(self) -> int:
        """The largest magnitude of a word that passed the test of smallness."""
        return 2 << self.rules.word_bits

    def advised(self, name: str, shape: Shape, bits: int, fill: Fill) -> Wire:
        """Add words that are small integers."""
        return self._add(name, leaf("words", name, shape, bits, self.word_bound), fill)

    def bits(self, name: str, shape: Shape, fill: Fill) -> Wire:
        """Add words that are zero or one."""
        wire = self._add(name, leaf("bits", name, shape, 0, 1), fill, "bits")
        self.exact(name, Quadratic(wire.times(-1), (wire * wire).products, shape, 0))
        return wire

    def free(self, name: str, shape: Shape, fill: Fill) -> Wire:
        """Add words that may be any field element, and are in no equation of integers."""
        return self._add(name, leaf("free", name, shape, 0, MODULUS), fill, "free")

    def ring(self, name: str, start: int, shape: Shape, bits: int) -> Wire:
        """Add committed ring words as signed integers: the sum of components minus the carries."""
        raw = leaf("ring", name, shape, bits, (1 << RING_BITS) * 3)
        self.rings.append(Ring(name, raw, start))
        carries = self.advised(f"{name}.carry", shape, bits, lambda value: _carries(value(raw)))
        lifted = raw - carries.times(1 << RING_BITS)
        return self.shown_small(lifted)

    def shown_small(self, wire: Wire) -> Wire:
        """Show that a wire is small, as words are."""
        self.small.append(wire)
        return wire.bounded(self.word_bound)

    # --- equations

    def exact(self, name: str, expression: Quadratic) -> None:
        """Require that an expression is zero."""
        self.require(Equation(name, expression, 0))

    def within(self, name: str, expression: Quadratic, quantum: int) -> None:
        """Require that an expression is within half a quantum of zero."""
        self.require(Equation(name, expression, quantum))

    def rounded(self, name: str, expression: Quadratic, bits: int) -> Wire:
        """Add words that are an expression, rounded to these fraction bits."""
        shift = expression.bits - bits
        if shift <= 0:
            expression, shift = expression.finer(bits), 0

        def fill(value: Values) -> Elements:
            return quadratic_value(expression, value).rounded_shift(shift)

        words = self.advised(name, expression.shape, bits, fill)
        scaled = words.finer(expression.bits).quadratic
        self.require(Equation(name, scaled - expression, (1 << shift) if shift else 0))
        return words.bounded((expression.bound >> shift) + SLACK_QUANTA)

    def determined(self, name: str, expression: Quadratic, bits: int) -> Wire:
        """Add words that are an expression, rounded to these fraction bits, halves up.

        Nothing is left open, unlike in `rounded`: what is rounded off is shown to be in its range.
        """
        words = self.rounded(name, expression, bits)
        if (shift := expression.bits - bits) > 0:
            half = constant(1 << (shift - 1), expression.shape, expression.bits)
            apart = expression - words.finer(expression.bits).quadratic
            above = apart.bounded(SLACK_QUANTA << shift) + half.quadratic
            self.nonnegative(f"{name}.low", above, shift)
            highest = constant((1 << shift) - 1, expression.shape, expression.bits).quadratic
            self.nonnegative(f"{name}.high", highest - above, shift)
        return words

    def exactly(self, name: str, expression: Quadratic, bits: int) -> Wire:
        """Add words that are an expression, which is a multiple of their quantum."""
        shift = expression.bits - bits

        def fill(value: Values) -> Elements:
            return quadratic_value(expression, value).rounded_shift(shift)

        words = self.advised(name, expression.shape, bits, fill)
        self.exact(name, words.finer(expression.bits).quadratic - expression)
        return words.bounded(expression.bound >> shift)

    def settled(self, name: str, wire: Wire, bits: int) -> Wire:
        """Round a wire whose fraction bits have grown by those of a weight."""
        return wire if _is_settled(wire, bits) else self.rounded(name, wire.quadratic, bits)

    def settled_exactly(self, name: str, wire: Wire, bits: int) -> Wire:
        """Do the same, but leave no choice: sides of ReLUs depend on it."""
        return wire if _is_settled(wire, bits) else self.determined(name, wire.quadratic, bits)

    def nonnegative(self, name: str, expression: Quadratic, size_bits: int) -> int:
        """Require that an expression is not negative: it is a square, up to rounding.

        Return by how much rounding may leave it below zero.

        Honest values have at most ``size_bits`` bits. They are scaled up by a power of four first:
        a nearest root is off by at most itself, so that what it leaves open is a vanishing part of
        the value. Roots stay within half of the largest quantum, and nothing may wrap around.
        """
        root_bits = -(-size_bits // 2)
        spare = MODULUS.bit_length() - 3 - (expression.bound.bit_length() + self.rules.unit_bits)
        raised = min(self.rules.unit_bits - root_bits, spare + root_bits)
        if raised < 0:
            raise StatementError(
                f"{name}: values of {size_bits} bits, at most 2^{expression.bound.bit_length()},"
                " are too large to be shown not to be negative"
            )
        scaled = expression.times(1 << 2 * raised)

        def fill(value: Values) -> Elements:
            return nearest_root(quadratic_value(scaled, value))

        root = self.advised(f"{name}.root", expression.shape, expression.bits, fill)
        square = Quadratic(None, (root * root).products, scaled.shape, scaled.bits)
        quantum = 2 << (root_bits + raised)
        self.require(Equation(name, scaled - square, quantum, least=1 << 2 * raised))
        return 1 + (SLACK_QUANTA * quantum >> 2 * raised)

    def finely_nonnegative(self, name: str, expression: Quadratic, size_bits: int) -> None:
        """Require that an expression is not negative: it is the sum of two squares, up to rounding.

        The first root is that of the whole, rounded down; the second is that of the rest, which
        has half as many bits, so that it can be scaled up more than the whole could. A rough
        equation bounds the rest, which would otherwise wrap around when it is scaled up.
        """
        unit = self.rules.unit_bits
        largest = 2 << unit

        def whole(value: Values) -> Elements:
            return lower_root(quadratic_value(expression, value))

        root = self.advised(f"{name}.root", expression.shape, expression.bits, whole)
        square = Quadratic(None, (root * root).products, expression.shape, expression.bits)
        self.within(f"{name}.rough", expression - square, largest)
        rest = (expression - square).bounded(SLACK_QUANTA * largest)
        rest_bits = (-(-size_bits // 2) + 1) // 2
        spare = MODULUS.bit_length() - 3 - (rest.bound.bit_length() + unit)
        raised = min(unit - rest_bits, spare + rest_bits)
        if raised < 0:
            raise StatementError(
                f"{name}: values of {size_bits} bits are too large to be shown not to be negative"
            )
        scaled = rest.times(1 << 2 * raised)

        def remaining(value: Values) -> Elements:
            return nearest_root(quadratic_value(scaled, value))

        second = self.advised(f"{name}.rest", expression.shape, expression.bits, remaining)
        second_square = Quadratic(None, (second * second).products, scaled.shape, scaled.bits)
        # Residuals are scaled up to the largest quantum, which must leave room for the square.
        room = MODULUS.bit_length() - 4 - 2 * self.word_bound.bit_length()
        quantum = max(2 << (rest_bits + raised), largest >> max(room, 0))
        self.require(Equation(name, scaled - second_square, quantum, least=1 << 2 * raised))

    def counted(self, name: str, expression: Quadratic, bits: int) -> None:
        """Require that a single integer is not negative, by its binary digits."""
        stage, self.stage = self.stage, LAST_STAGE

        def fill(value: Values) -> Elements:
            found = quadratic_value(expression, value).to_signed()[0]
            return Elements.of_python([max(found, 0)]).bits(bits).reshape(bits)

        digits = self.bits(f"{name}.digits", (bits,), fill)
        self.stage = stage
        total = replace(digits_value(digits), bits=expression.bits)
        self.exact(f"{name}.bound", expression - total.quadratic)

    def add_gradient(self, parameter: str, left: Wire | None, right: Wire) -> None:
        """Add the gradient by one parameter."""
        if parameter in self.gradient:
            raise StatementError(f"{parameter} is used twice: a parameter has one use in a step")
        self.gradient[parameter] = GradientTerm(parameter, left, right)

    # --- storage

    def _add(self, name: str, wire: Wire, fill: Fill, kind: str = "small") -> Wire:
        if any(group.name == name for group in self.words):
            raise StatementError(f"words {name} exist already: give every layer a name of its own")
        self.words.append(Words(name, wire, fill, kind, self.stage))
        return wire

    def require(self, equation: Equation, further_bound: int = 0) -> None:
        """Add an equation; `further_bound` is the magnitude of its projected gradient."""
        if any(each.name == equation.name for each in self.equations):
            # Both would be combined with the same random coefficients, and could cancel each other.
            raise StatementError(
                f"equation {equation.name} exists already: give every layer a name of its own"
            )
        largest = 2 << self.rules.unit_bits
        if equation.quantum > largest:
            raise StatementError(
                f"{equation.name}: a quantum of {equation.quantum:,} is beyond {largest:,}"
            )
        scale = largest // equation.quantum if equation.quantum else 1
        reached = (equation.expression.bound + further_bound) * scale
        if 2 * reached >= MODULUS:
            bits = reached.bit_length()
            raise StatementError(
                f"{equation.name} could wrap around: it may reach 2^{bits}, beyond half of p."
                " Weights are too large, or the policy has too many fraction bits"
            )
        self.equations.append(equation)


def _is_settled(wire: Wire, bits: int) -> bool:
    return wire.bits <= bits + 8


def digits_value(digits: Wire) -> Wire:
    """Return the integers whose binary digits are on the last axis."""
    count = digits.shape[-1]
    rows = digits.reshape(-1, count)
    total: Wire | None = None
    # Public factors of `matrix` are limited to 32 bits, so digits are joined in groups.
    for start in range(0, count, _DIGITS):
        stop = min(count, start + _DIGITS)
        index = np.arange(rows.size).reshape(rows.shape)[:, start:stop]
        weights = (np.int64(1) << np.arange(stop - start, dtype=np.int64))[:, None]
        part = rows.gather(index).matrix(weights, 0).times(1 << start)
        total = part if total is None else total + part
    assert total is not None
    return total.reshape(*digits.shape[:-1])


def quadratic_value(expression: Quadratic, value: Values) -> Elements:
    """Return the integers of an expression."""
    shape = expression.shape
    total = value(expression.linear) if expression.linear else Elements.zeros(shape)
    for each in expression.products:
        found = value(each.left) * value(each.right) * each.factor
        if len(each.left.shape) > len(shape):
            found = found.reshape(*shape, -1).sum(len(shape))
        total = total + found
    return total


def nearest_root(values: Elements) -> Elements:
    """Return nearest roots; of a negative number, which no root can show, zero."""
    floats = values.to_floats()
    if (floats < 0).any():
        keep = Elements.of_integers((floats >= 0).astype(np.int64))
        values = values * keep
    return values.square_root()


def lower_root(values: Elements) -> Elements:
    """Return roots, rounded down; of a negative number zero."""
    roots = nearest_root(values)
    too_large = ((values - roots * roots).to_floats() < 0) & (roots.to_floats() > 0)
    return roots - Elements.of_integers(too_large.astype(np.int64))


def _carries(sums: Elements) -> Elements:
    """Return the multiple of 2^64 that makes a sum of components a signed ring word."""
    return sums.rounded_shift(RING_BITS)
