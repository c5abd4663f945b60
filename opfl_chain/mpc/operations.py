"""Operations written for MPC: few messages, few kernels, enough bits.

What costs here is not what costs on a GPU. A comparison or a secret product takes messages, a
division takes dozens, and SPU spends about 0.2 ms to dispatch any operation at all. Weights are
public, so products with them are local but for one truncation.
"""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array


class MpcOperations:
    """`models.Operations` for secret examples and public weights."""

    def convolution(
        self, examples: Array, weight: Array, bias: Array, *, padding: int, name: str
    ) -> Array:
        del name
        around = (padding, padding)
        padded = jnp.pad(examples, ((0, 0), around, around, (0, 0))) if padding else examples
        return _convolution(padded, weight, bias)

    def dense(self, examples: Array, weight: Array, bias: Array, *, name: str) -> Array:
        del name
        return examples @ weight + bias

    def relu(self, values: Array, *, name: str) -> Array:
        del name
        return _relu(values)

    def average_pool(self, images: Array, *, name: str) -> Array:
        del name
        return _average_pool(images)


@jax.custom_vjp
def _relu(x: Array) -> Array:
    return (x > 0) * x


def _relu_forward(x: Array) -> tuple[Array, Array]:
    mask = x > 0
    return mask * x, mask


def _relu_backward(mask: Array, cotangent: Array) -> tuple[Array]:
    """Reuse the comparison."""
    return (mask * cotangent,)


_relu.defvjp(_relu_forward, _relu_backward)


@jax.custom_vjp
def _convolution(x: Array, weight: Array, bias: Array) -> Array:
    return _convolution_forward(x, weight, bias)[0]


def _convolution_forward(x: Array, weight: Array, bias: Array) -> tuple[Array, tuple[Array, Array]]:
    batch, height, width, _ = x.shape
    side, outputs = weight.shape[0], weight.shape[3]
    unfolded = patches(x, side)
    flat = unfolded @ patch_matrix(weight) + bias
    shape = (batch, height - side + 1, width - side + 1, outputs)
    return flat.reshape(shape), (unfolded, weight)


def _convolution_backward(
    kept: tuple[Array, Array], cotangent: Array
) -> tuple[Array, Array, Array]:
    """The gradient of the input is a convolution too, with the kernel turned around."""
    unfolded, weight = kept
    side, _, inputs, outputs = weight.shape
    flat = cotangent.reshape(-1, outputs)
    around = (side - 1, side - 1)
    padded = jnp.pad(cotangent, ((0, 0), around, around, (0, 0)))
    turned = weight[::-1, ::-1].transpose(0, 1, 3, 2)
    batch, height, width, _ = padded.shape
    shape = (batch, height - side + 1, width - side + 1, inputs)
    of_input = (patches(padded, side) @ patch_matrix(turned)).reshape(shape)
    return of_input, kernel_of(unfolded.T @ flat, side, inputs), jnp.sum(flat, axis=0)


_convolution.defvjp(_convolution_forward, _convolution_backward)


@jax.custom_vjp
def _average_pool(x: Array) -> Array:
    return sum_pool(x) * 0.25


def _average_pool_forward(x: Array) -> tuple[Array, None]:
    return _average_pool(x), None


def _average_pool_backward(_: None, cotangent: Array) -> tuple[Array]:
    """Scale first, while there is a quarter of the values."""
    return (spread(cotangent * 0.25),)


_average_pool.defvjp(_average_pool_forward, _average_pool_backward)


def patches(x: Array, size: int) -> Array:
    """Unfold images (batch, height, width, channels) for a convolution as a matrix product.

    A row holds one window, ordered by column, row and channel. Rows are cut first and columns then,
    which takes 2 * size slices instead of size squared.
    """
    batch, height, width, channels = x.shape
    out_height, out_width = height - size + 1, width - size + 1
    rows = jnp.concatenate([x[:, i : i + out_height] for i in range(size)], axis=3)
    both = jnp.concatenate([rows[:, :, j : j + out_width] for j in range(size)], axis=3)
    return both.reshape(batch * out_height * out_width, size * size * channels)


def patch_matrix(kernel: Array) -> Array:
    """Arrange a kernel (height, width, in, out) so that it multiplies `patches`."""
    height, width, inputs, outputs = kernel.shape
    return kernel.transpose(1, 0, 2, 3).reshape(height * width * inputs, outputs)


def kernel_of(matrix: Array, size: int, inputs: int) -> Array:
    """Return the kernel that `patch_matrix` arranged."""
    return matrix.reshape(size, size, inputs, -1).transpose(1, 0, 2, 3)


def sum_pool(x: Array) -> Array:
    """Add up windows of 2 x 2."""
    batch, height, width, channels = x.shape
    pairs = x.reshape(batch, height // 2, 2, width * channels)
    rows = pairs[:, :, 0] + pairs[:, :, 1]
    pairs = rows.reshape(batch, height // 2, width // 2, 2, channels)
    return pairs[:, :, :, 0] + pairs[:, :, :, 1]


def spread(x: Array) -> Array:
    """Repeat every value in a window of 2 x 2: the transpose of `sum_pool`."""
    batch, height, width, channels = x.shape
    shape = (batch, height, 2, width, 2, channels)
    repeated = jnp.broadcast_to(x[:, :, None, :, None, :], shape)
    return repeated.reshape(batch, 2 * height, 2 * width, channels)


def softmax(logits: Array) -> Array:
    """Return the softmax of each row.

    The largest logit is subtracted, so that the sum of n exponentials lies in [1, n]: its
    reciprocal needs no general division.
    """
    exponentials = exponential(logits - jnp.max(logits, axis=-1, keepdims=True))
    total = jnp.sum(exponentials, axis=-1, keepdims=True)
    return exponentials * reciprocal(total, logits.shape[-1])


def exponential(x: Array) -> Array:
    """Return exp(x) for x in [-128, 0], as the 64th power of a polynomial p of x / 64.

    Squaring six times multiplies an error by 64, so q = 64 * (p - 1) is squared instead of p: its
    rounding is then 64 times finer than that of the result, as p^2 is 2 * q + (q / 8)^2. Far below
    0, where the polynomial is not close to the exponential, both have a 64th power below a quantum.
    """
    square = _squared_eighth(x)
    q = x + square * (0.5 + x * (1.0 / 384) + square * (1.0 / 1536))
    for _ in range(6):
        q = 2.0 * q + _squared_eighth(q)
    return 1.0 + q * (1.0 / 64)


def _squared_eighth(x: Array) -> Array:
    eighth = x * 0.125
    return eighth * eighth


def reciprocal(x: Array, largest: float, bits: int = 20) -> Array:
    """Return 1 / x for x in [1, largest], by Newton's iteration from the best straight line.

    Of all lines a + b * x this one has the smallest largest error e = |1 - x * (a + b * x)|, and
    every step squares it.
    """
    slope = -2.0 / (largest + (1 + largest) ** 2 / 4)
    error = 1.0 + slope * largest
    y = slope * x - slope * (1 + largest)
    while error > 2.0**-bits:
        y = y * (2.0 - x * y)
        error *= error
    return y


def inverse_root(x: Array, smallest: float, largest: float, bits: int = 20) -> Array:
    """Return 1 / sqrt(x) for x in [smallest, largest], by Newton's iteration from a straight line.

    The wider the range, the more steps: five over an octave, ten over eight octaves.
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
    # Beyond sqrt(3) times the root the iteration changes its sign; on it, it is zero.
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
    raise ValueError(f"no line serves [{smallest}, {largest}]")
