"""The end of every statement: the gradient is compared, residuals and words are shown to be small.

All three use random projections with ternary coins, each drawn after what it tests is fixed:

- Stage 1. The committed gradient G is in ring shares, and too long to be lifted to the field word
  by word. Its projections are lifted instead, and compared with those of the gradient that follows
  from the advice: the sum of the squared differences is at most the tolerance squared times the sum
  of the squared projections, plus a floor for the rounding of G.
- Stage 2. The projections of all residuals, each in units of half its own quantum, have a sum of
  squares that residuals of one unit each would have on average.
- Stage 3. The projections of all words, as binary digits, are small: so every word is a small
  integer, and nothing wraps around.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from opfl_chain.numerics.field import MODULUS, Elements
from opfl_chain.protocol.hashing import sha256
from opfl_chain.protocol.proof.statement import (
    LAST_STAGE,
    RING_BITS,
    SLACK_QUANTA,
    Builder,
    Equation,
    GradientTerm,
    Ring,
    Rules,
    Values,
    Words,
    quadratic_value,
)
from opfl_chain.protocol.proof.wires import Quadratic, StatementError, Wire, constant, leaf

STAGES: Final = LAST_STAGE + 1
TOLERANCE_BITS: Final = 40
"""The fraction bits of the tolerance."""
_LOW_BITS: Final = 6
"""The low bits of a projection of G, which are words of their own."""
_LEAST_APART_BITS: Final = 16
"""The least fraction bits of the differences of projections of G."""
_APART_BITS: Final = 34
"""Their fraction bits, unless an equation could wrap around: what rounding leaves open in them adds
to the tolerance, whatever the norm of the gradient."""
_COMPARED_BITS: Final = 80
"""The binary digits of the difference of the two sums of squares."""

PROJECTED_COMMITMENT: Final = "projected commitment"
PROJECTED_GRADIENT: Final = "projected gradient"
RESIDUAL_PROJECTIONS: Final = "residuals.projected"
WORD_DIGITS: Final = "words.digits"
MASKS: Final = "masks"


@dataclass(frozen=True)
class Tolerance:
    """The allowed distance of the committed gradient from the one that follows from the advice."""

    relative: int
    """The part of the gradient's norm, in units of 2^-40."""
    absolute: int
    """The distance that is allowed beside it, in the same units, for the rounding of G.

    It is the distance of gradients that are scaled up by the lift and added up over the batch.
    """


@dataclass(frozen=True)
class Commitment:
    """The form of the committed gradient."""

    bits: int
    """The fraction bits of its words."""
    batch: int
    """The number of examples over which it is the mean."""


@dataclass(frozen=True, eq=False)
class Statement:
    """The words and equations of a step, the same for client and members."""

    rules: Rules
    words: tuple[Words, ...]
    equations: tuple[Equation, ...]
    rings: tuple[Ring, ...]
    small: tuple[Wire, ...]
    """Wires that are shown to be small besides the words."""
    gradient: tuple[GradientTerm, ...]
    """The parts of the gradient in the canonical order of coordinates."""
    projected: Wire
    """Stands for the projections of the step's gradient, which only the client knows."""
    floor: int
    """The sum of squared projections that is allowed whatever the gradient."""
    hash: bytes
    """The digest of all of the above."""

    @cached_property
    def coordinates(self) -> int:
        """The number of coordinates of the gradient."""
        return sum(term.size for term in self.gradient)

    @property
    def input_words(self) -> int:
        """The number of committed words of the input."""
        return sum(ring.wire.size for ring in self.rings if ring.name != PROJECTED_COMMITMENT)

    @property
    def gradient_bits(self) -> int:
        """The fraction bits of the gradient that follows from the advice."""
        return max(term.bits for term in self.gradient)

    def stage(self, number: int) -> tuple[Words, ...]:
        """Return the groups of words of one stage."""
        return tuple(group for group in self.words if group.stage == number)

    def count(self, stage: int) -> int:
        """Return the number of words of one stage."""
        return sum(group.wire.size for group in self.stage(stage))

    @cached_property
    def rounded(self) -> tuple[Equation, ...]:
        """The equations that hold up to rounding."""
        return tuple(equation for equation in self.equations if equation.quantum)

    @cached_property
    def residuals(self) -> int:
        """The number of equations that hold up to rounding."""
        return sum(equation.size for equation in self.rounded)

    @cached_property
    def shown_small(self) -> tuple[Wire, ...]:
        """All that is shown to be small: words that are no bits, and further wires."""
        words = [group.wire for group in self.words if group.kind == "small"]
        return (*words, *self.small)

    @cached_property
    def products(self) -> int:
        """The number of products in a combination of all equations; see `combination`."""
        sizes = {
            id(each.left.compute): each.left.size
            for equation in self.equations
            for each in equation.expression.products
        }
        sizes |= {id(t.right.compute): t.right.size for t in self.gradient if t.left is not None}
        return sum(sizes.values())

    @property
    def unit(self) -> int:
        """Half of the largest quantum, to which residuals are scaled up."""
        return 1 << self.rules.unit_bits

    @property
    def residual_bound(self) -> int:
        """The largest sum of the squared projections of residuals."""
        return self.rules.projections * self.residuals * self.unit**2 // 2


def seal(
    builder: Builder,
    parameters: Sequence[str],
    factor: Wire,
    commitment: Commitment,
    tolerance: Tolerance,
) -> Statement:
    """Complete a statement whose gradient has the parameters in this order.

    ``factor`` is the secret integer by which the errors are scaled up.
    """
    if missing := [name for name in parameters if name not in builder.gradient]:
        raise StatementError(f"{missing[0]} has no gradient: the logits do not depend on it")
    terms = tuple(builder.gradient[name] for name in parameters)
    projected, floor = _compare_gradient(builder, terms, factor, commitment, tolerance)
    _show_residuals_small(builder)
    _show_words_small(builder)
    builder.free(MASKS, (2,), _no_fill)
    return Statement(
        builder.rules,
        tuple(builder.words),
        tuple(builder.equations),
        tuple(builder.rings),
        tuple(builder.small),
        terms,
        projected,
        floor,
        sha256(b"opfl.v1.statement", *_described(builder, terms, tolerance)),
    )


def _compare_gradient(
    builder: Builder,
    terms: Sequence[GradientTerm],
    factor: Wire,
    commitment: Commitment,
    tolerance: Tolerance,
) -> tuple[Wire, int]:
    builder.stage = 1
    rules = builder.rules
    shape = (rules.projections,)
    bits = max(term.bits for term in terms)
    coarsest = rules.unit_bits + 1
    if bits < (least := max(commitment.bits, coarsest + _LEAST_APART_BITS)):
        raise StatementError(
            f"the gradient has {bits} fraction bits, it needs {least} to be compared with the"
            " committed one: give the policy more value_bits or error_bits, or fewer unit_bits"
        )
    reach = sum(term.size * term.bound << (bits - term.bits) for term in terms)
    raw = leaf("ring", PROJECTED_COMMITMENT, shape, commitment.bits, 3 << RING_BITS)
    builder.rings.append(Ring(PROJECTED_COMMITMENT, raw, 0))
    carry = builder.advised(
        "gradient.carry", shape, commitment.bits, lambda value: value(raw).rounded_shift(RING_BITS)
    )
    lifted = raw - carry.times(1 << RING_BITS)
    high = builder.advised(
        "gradient.high", shape, 0, lambda value: value(lifted).rounded_shift(_LOW_BITS)
    )
    low = builder.advised(
        "gradient.low", shape, 0, lambda value: value(lifted) - value(high) * (1 << _LOW_BITS)
    )
    joined = high.times(1 << _LOW_BITS) + low
    # Carries and parts are small integers, so both sides are equal as integers too.
    builder.exact("gradient.lift", Quadratic(lifted, (), shape, 0) - joined.quadratic)
    gradient = leaf("projected", PROJECTED_GRADIENT, shape, bits, reach)
    scaled = factor.broadcast(shape) * joined.times(commitment.batch << (bits - commitment.bits))
    # Residuals are scaled up to the coarsest quantum, which must not make them wrap around.
    room = MODULUS.bit_length() - 3 - (scaled.bound + reach).bit_length()
    shift = min(coarsest, max(coarsest - max(room, 0), bits - _APART_BITS, 1))

    def difference(value: Values) -> Elements:
        return (quadratic_value(scaled, value) - value(gradient)).rounded_shift(shift)

    apart = builder.advised("gradient.apart", shape, bits - shift, difference)
    step = builder.advised(
        "gradient.step", shape, bits - shift, lambda value: value(gradient).rounded_shift(shift)
    )
    expression = Quadratic(apart.times(1 << shift), (), shape, scaled.bits) - scaled
    builder.require(Equation("gradient.apart", expression, 1 << shift, 1), reach)
    expression = Quadratic(step.times(1 << shift), (), shape, bits)
    builder.require(Equation("gradient.step", expression, 1 << shift, -1), reach)
    allowed = builder.rounded(
        "gradient.allowed",
        Quadratic(step.times(tolerance.relative), (), shape, TOLERANCE_BITS),
        0,
    )
    # A vector has half the sum of its squares in each squared projection, on average.
    floor = rules.projections * tolerance.absolute**2 << 2 * apart.bits >> 2 * TOLERANCE_BITS + 1
    squares = (allowed * allowed).sum() + constant(floor, (), 0).quadratic
    apart_squares = Quadratic(None, (apart * apart).products, (), 0)
    builder.counted("gradient", squares - apart_squares, _COMPARED_BITS)
    return gradient, floor


def _show_residuals_small(builder: Builder) -> None:
    residuals = sum(each.size for each in builder.equations if each.quantum)
    rules = builder.rules
    bound = rules.projections * residuals << (2 * rules.unit_bits - 1)
    # Without wrap-around every projection is below the root of the bound, and every residual below
    # twice that; both are counted in units.
    if rules.projections * residuals >= (SLACK_QUANTA // 4) ** 2:
        raise StatementError(f"{residuals:,} rounded equations are too many for one test")
    # Honest residuals are uniform: their projections have a variance of a sixth of a unit squared
    # for each, and a projection of those has half of their sum.
    if rules.projections * residuals << 2 * rules.unit_bits > 12 << 2 * rules.word_bits:
        raise StatementError(
            f"no honest step would pass: with {residuals:,} rounded equations and"
            f" {rules.unit_bits} unit_bits, projections of words go beyond 2^{rules.word_bits}:"
            " give the policy more word_bits, or fewer unit_bits"
        )
    builder.stage = 2
    projected = builder.advised(RESIDUAL_PROJECTIONS, (rules.projections,), 0, _no_fill)
    squares = Quadratic(None, (projected * projected).products, (), 0)
    expression = Quadratic(constant(bound, (), 0), (), (), 0) - squares
    builder.counted("residuals", expression, bound.bit_length())


def _show_words_small(builder: Builder) -> None:
    builder.stage = LAST_STAGE
    rules = builder.rules
    builder.bits(WORD_DIGITS, (rules.projections, rules.word_bits + 1), _no_fill)


def _no_fill(value: Values) -> Elements:
    raise StatementError("these words follow from random coins")


def _described(
    builder: Builder, terms: Sequence[GradientTerm], tolerance: Tolerance
) -> Iterator[bytes]:
    """Yield a description of everything that both sides must agree on."""
    numbers: dict[int, int] = {}
    lines: list[bytes] = []

    def number(wire: Wire) -> int:
        known = numbers.get(id(wire.compute))
        if known is not None:
            return known
        parents = [number(parent) for parent in wire.parents]
        text = f"{wire.kind} {wire.shape} {parents}".encode()
        lines.append(sha256(text, b"|", wire.detail))
        numbers[id(wire.compute)] = len(numbers)
        return len(numbers) - 1

    rules = builder.rules
    yield (
        f"{rules.value_bits} {rules.error_bits} {rules.unit_bits} {rules.word_bits}"
        f" {rules.range_bits} {rules.projections} {tolerance.relative} {tolerance.absolute}\n"
    ).encode()
    for group in builder.words:
        yield f"{group.name} {group.kind} {group.stage} {number(group.wire)}\n".encode()
    for equation in builder.equations:
        found = equation.expression
        linear = number(found.linear) if found.linear else None
        products = [(number(p.left), number(p.right), p.factor) for p in found.products]
        yield (
            f"{equation.name} {found.shape} {equation.quantum} {equation.gradient_factor}"
            f" {linear} {products}\n"
        ).encode()
    for ring in builder.rings:
        yield f"{ring.name} {number(ring.wire)} {ring.start}\n".encode()
    yield f"small {[number(wire) for wire in builder.small]}\n".encode()
    for term in terms:
        left = number(term.left) if term.left else None
        yield f"{term.parameter} {left} {number(term.right)} {term.bits}\n".encode()
    yield from lines
