"""Nonlinear operations: ReLU and softmax, and their approximations in MPC.

Approximations take products and sums only. They are within the errors that docs/MPC.md states.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from opfl_chain.learning.errors import FormMissing
from opfl_chain.learning.operations.operation import (
    Layer,
    Operation,
    Proved,
    Shape,
    with_gradient,
)
from opfl_chain.numerics.field import Elements
from opfl_chain.protocol.proof.statement import SLACK_QUANTA, Values
from opfl_chain.protocol.proof.wires import Wire

if TYPE_CHECKING:
    from jax import Array
    from torch import Tensor


class Relu(Operation):
    """Returns max(x, 0), with gradient 0 at 0."""

    has_mask = True

    def shape(self, values: Shape) -> Shape:
        return values

    def torch(self, values: Tensor) -> Tensor:
        from torch.nn.functional import relu

        return relu(values)

    def jax(self, values: Array) -> Array:
        from jax.nn import relu

        positive: Array = relu(values)
        return positive

    def mpc(self, values: Array) -> Array:
        """Compare once; the gradient reuses the comparison."""
        positive: Array = with_gradient(_relu_forward, _relu_backward)(values)
        return positive

    def masked(self, values: Any, mask: Any) -> Any:
        return values * mask

    def prove(self, layer: Layer, values: Wire) -> Proved:
        """Advise the side of every value; the result is the product of value and side.

        Twice the product minus the value is the magnitude, if the side is right. It is stated of
        the product itself, as an integer, less one on the positive side: no value has two sides.
        """
        builder, rules = layer.builder, layer.builder.rules
        mask = builder.bits(mask_name(layer.name), values.shape, lambda value: signs(value(values)))
        product = mask * values
        magnitude = product.times(2) - values.quadratic
        beyond_zero = magnitude - mask.divided(values.bits).quadratic
        builder.finely_nonnegative(
            f"{layer.name}.side", beyond_zero, values.bits + rules.range_bits
        )

        def backward(errors: Wire) -> tuple[Wire]:
            return (builder.rounded(f"{layer.name}.error", mask * errors, rules.error_bits),)

        return Proved(product, backward)


def mask_name(layer: str) -> str:
    """Return the name of the words that tell the sides of a layer's values."""
    return f"{layer}.mask"


def signs(values: Elements) -> Elements:
    """Return one where a value is positive, else zero."""
    return Elements.of_integers((values.to_floats() > 0).astype(np.int64))


def _relu_forward(x: Array) -> tuple[Array, Array]:
    mask = x > 0
    return mask * x, mask


def _relu_backward(mask: Array, cotangent: Array) -> tuple[Array]:
    return (mask * cotangent,)


class Softmax(Operation):
    """Returns exponentials divided by their sum over the last axis."""

    def shape(self, logits: Shape) -> Shape:
        return logits

    def torch(self, logits: Tensor) -> Tensor:
        from torch import softmax

        return softmax(logits, -1)

    def jax(self, logits: Array) -> Array:
        from jax.nn import softmax

        probabilities: Array = softmax(logits)
        return probabilities

    def mpc(self, logits: Array) -> Array:
        """Subtract the largest logit, so that the sum of n exponentials lies in [1, n].

        Its reciprocal then needs no general division.
        """
        import jax.numpy as jnp

        exponentials = exponential(logits - jnp.max(logits, axis=-1, keepdims=True))
        total = jnp.sum(exponentials, axis=-1, keepdims=True)
        probabilities: Array = exponentials * reciprocal(total, logits.shape[-1])
        return probabilities

    def prove(self, layer: Layer, logits: Wire) -> Proved:
        """Advise the logarithm of the sum of exponentials, so that these are probabilities.

        exp(x) is the 2^16-th power of (2 + y) / (2 - y) with y = x / 2^16, by sixteen squarings.
        Arguments below -1024 are refused: far below, the fraction comes near -1, and its power
        near one again. Probabilities themselves are finer: those of an example of which the model
        is sure are small, and their errors are scaled up. They add up to one within what sixteen
        squarings make of a quantum: whatever the sum leaves open scales the whole gradient.
        """
        builder, unit = layer.builder, layer.builder.rules.unit_bits
        finest = unit + max(0, min(_FINER_BITS, builder.rules.word_bits - _ROOM_BITS - unit))
        shape = (logits.shape[0], 1)
        name = layer.name

        def log_of_sum(value: Values) -> Elements:
            reals = value(logits).to_floats() * 2.0**-logits.bits
            largest = reals.max(1, keepdims=True)
            found = largest + np.log(np.exp(reals - largest).sum(1, keepdims=True))
            return Elements.of_python([round(each * (1 << bits)) for each in found.flat])

        # More than the argument has would leave no room for large logits.
        bits = min(logits.bits, unit - _SQUARINGS + 2)
        ceiling = builder.advised(f"{name}.ceiling", shape, bits, log_of_sum)
        below = ceiling.finer(logits.bits).broadcast(logits.shape)
        argument = builder.rounded(
            f"{name}.argument", (logits - below).divided(_SQUARINGS).quadratic, unit
        )
        lowest = unit - _SQUARINGS + _LOWEST_BITS
        above = argument.plus(1 << lowest).quadratic
        builder.nonnegative(f"{name}.range", above, lowest + 1)

        def fraction(value: Values) -> Elements:
            two = 2 << unit
            pairs = [(two + y, two - y) for y in value(argument).to_signed()]
            return Elements.of_python([((a << unit + 1) + b) // (2 * b) for a, b in pairs])

        power = builder.advised(f"{name}.power0", logits.shape, unit, fraction)
        numerator = argument.finer(2 * unit).plus(2 << 2 * unit).quadratic
        denominator = power.finer(2 * unit).times(2).quadratic - argument * power
        builder.within(f"{name}.power0", denominator - numerator, 2 << unit)
        for number in range(1, _SQUARINGS):
            power = builder.rounded(f"{name}.power{number}", power * power, unit)
        power = builder.rounded(f"{name}.power{_SQUARINGS}", power * power, finest)
        total = power.sum(-1).plus(-1 << finest)
        quantum = 1 << (finest - unit + _SQUARINGS)
        builder.within(f"{name}.sum", total.quadratic, quantum)
        # Squares are not negative and add up to one, so that each of them is at most one, but for
        # what rounding leaves open in the sum and below the others.
        slack = SLACK_QUANTA * (quantum + logits.shape[-1])
        probabilities = power.bounded((1 << finest) + slack)

        def backward(errors: Wire) -> tuple[Wire]:
            raise FormMissing(self, "prove, of its gradient")

        return Proved(probabilities, backward)


_SQUARINGS = 16
_FINER_BITS = 6
"""Further fraction bits of probabilities: with more, squares of words could wrap around."""
_ROOM_BITS = 6
"""The bits between a probability of one and the bound on projections of words."""
_LOWEST_BITS = 10
"""The lowest argument of an exponential is -2^10."""


def exponential(x: Any) -> Any:
    """Return exp(x) for x in [-128, 0], as the 64th power of a polynomial p of x / 64.

    Squaring six times multiplies an error by 64, so q = 64 * (p - 1) is squared instead of p: its
    rounding is 64 times finer than that of the result. Squaring p maps q to 2 * q + (q / 8)^2. Far
    below 0 the polynomial differs from the exponential, but both 64th powers are below a quantum.
    """
    square = _squared_eighth(x)
    q = x + square * (0.5 + x * (1.0 / 384) + square * (1.0 / 1536))
    for _ in range(6):
        q = 2.0 * q + _squared_eighth(q)
    return 1.0 + q * (1.0 / 64)


def _squared_eighth(x: Any) -> Any:
    eighth = x * 0.125
    return eighth * eighth


def reciprocal(x: Any, largest: float, bits: int = 20) -> Any:
    """Return 1 / x for x in [1, largest], by Newton's iteration from the best straight line.

    The line a + b * x minimises the largest error e = |1 - x * (a + b * x)|; every step squares it.
    """
    slope = -2.0 / (largest + (1 + largest) ** 2 / 4)
    error = 1.0 + slope * largest
    y = slope * x - slope * (1 + largest)
    while error > 2.0**-bits:
        y = y * (2.0 - x * y)
        error *= error
    return y


def inverse_root(x: Any, smallest: float, largest: float, bits: int = 20) -> Any:
    """Return 1 / sqrt(x) for x in [smallest, largest], by Newton's iteration from a straight line.

    A wider range takes more steps: five over an octave, ten over eight octaves.
    """
    left, right, steps = _best_line(smallest, largest, 2.0**-bits)
    slope = (right - left) / (largest - smallest)
    y = slope * x + (left - slope * smallest)
    half = x * 0.5
    for _ in range(steps):
        y = y * (1.5 - half * (y * y))
    return y


@cache
def _best_line(smallest: float, largest: float, tolerance: float) -> tuple[float, float, int]:
    """Return the ends of a line from which Newton's iteration converges in the fewest steps."""
    x = np.geomspace(smallest, largest, 257)
    # Beyond sqrt(3) times the root the iteration changes its sign; at sqrt(3) times it is zero.
    factors = np.linspace(0.05, 1.65, 65)
    left, right = np.meshgrid(factors / np.sqrt(smallest), factors / np.sqrt(largest))
    place = (x - smallest) / (largest - smallest)
    y = left[..., None] * (1 - place) + right[..., None] * place
    y[(x * y * y).max(-1) >= 3] = np.nan
    for steps in range(64):
        error = np.abs(1 - x * y * y).max(-1)
        if np.nanmin(error) <= tolerance:
            best = np.unravel_index(np.nanargmin(error), error.shape)
            return float(left[best]), float(right[best]), steps
        y = y * (1.5 - 0.5 * x * y * y)
    raise ValueError(f"Newton's iteration does not converge on [{smallest}, {largest}]")
