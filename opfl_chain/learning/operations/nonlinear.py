"""Nonlinear operations: ReLU and softmax, and their approximations in MPC.

Approximations take products and sums only. They are within the errors that docs/MPC.md states.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from opfl_chain.learning.operations.operation import Operation, Shape, with_gradient

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
