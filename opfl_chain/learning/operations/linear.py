"""Linear operations: dense layers, convolution and average pooling.

In MPC they take no messages but those of truncations, because parameters are public.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.learning.operations.operation import (
    Layer,
    Operation,
    Proved,
    PublicParameter,
    Shape,
    require,
    with_gradient,
)
from opfl_chain.protocol.proof.wires import PADDING, Quadratic, Wire

if TYPE_CHECKING:
    from jax import Array
    from torch import Tensor


class Dense(Operation):
    """Multiplies (batch, in) by (in, out), and adds the bias (out)."""

    def shape(self, values: Shape, weight: Shape, bias: Shape) -> Shape:
        fits = len(values) == 2 and values[1:] == weight[:1] and bias == weight[1:]
        require(fits, "(batch, in), (in, out) and (out,)", values, weight, bias)
        return values[0], weight[1]

    def torch(self, values: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        from torch.nn.functional import linear

        # A contiguous weight selects the same kernels, and so the same rounding, everywhere.
        return linear(values, weight.t().contiguous(), bias)

    def jax(self, values: Array, weight: Array, bias: Array) -> Array:
        return values @ weight + bias

    def prove(
        self, layer: Layer, values: Wire, weight: PublicParameter, bias: PublicParameter
    ) -> Proved:
        return _proved_dense(layer, values, weight, bias)


class Convolution(Operation):
    """Convolves (batch, height, width, in) by (side, side, in, out), and adds the bias (out)."""

    def shape(self, images: Shape, weight: Shape, bias: Shape, *, padding: int) -> Shape:
        fits = (len(images), len(weight)) == (4, 4) and images[3:] == weight[2:3]
        fits = fits and weight[0] == weight[1] and bias == weight[3:]
        expected = "(batch, height, width, in), (side, side, in, out) and (out,)"
        require(fits, expected, images, weight, bias)
        batch, height, width, _ = images
        lost = weight[0] - 1 - 2 * padding
        return batch, height - lost, width - lost, weight[3]

    def torch(self, images: Tensor, weight: Tensor, bias: Tensor, *, padding: int) -> Tensor:
        from torch.nn.functional import conv2d

        # A contiguous weight selects the same kernels, and so the same rounding, everywhere.
        filters = weight.permute(3, 2, 0, 1).contiguous()
        convolved = conv2d(images.permute(0, 3, 1, 2), filters, bias, padding=padding)
        return convolved.permute(0, 2, 3, 1)

    def jax(self, images: Array, weight: Array, bias: Array, *, padding: int) -> Array:
        from jax.lax import conv_general_dilated

        around = ((padding, padding), (padding, padding))
        order = ("NHWC", "HWIO", "NHWC")
        return bias + conv_general_dilated(images, weight, (1, 1), around, dimension_numbers=order)

    def mpc(self, images: Array, weight: Array, bias: Array, *, padding: int) -> Array:
        """Multiply unfolded windows by the filters, as one matrix product."""
        padded = _padded(images, padding) if padding else images
        convolved: Array = with_gradient(_convolution_forward, _convolution_backward)(
            padded, weight, bias
        )
        return convolved

    def prove(
        self,
        layer: Layer,
        images: Wire,
        weight: PublicParameter,
        bias: PublicParameter,
        *,
        padding: int,
    ) -> Proved:
        """Multiply windows by the filters; errors are convolved with the turned filters."""
        side, _, inputs, outputs = weight.shape
        batch, height, width, _ = self.shape(
            images.shape, weight.shape, bias.shape, padding=padding
        )
        values = _settled_input(layer, images)
        rows = values.gather(_windows(values.shape, side, padding))
        product = _product_with_bias(rows, weight, bias)

        def backward(errors: Wire) -> tuple[Wire]:
            settled = _settled_errors(layer, errors)
            flat = settled.reshape(-1, outputs)
            layer.gradient(weight, rows, flat)
            layer.gradient(bias, None, flat)
            windows = settled.gather(_windows(settled.shape, side, side - 1 - padding))
            turned = weight.integers[::-1, ::-1].transpose(0, 1, 3, 2).reshape(-1, inputs)
            return (windows.matrix(turned, weight.bits).reshape(*images.shape),)

        return Proved(product.reshape(batch, height, width, outputs), backward)


def _product_with_bias(rows: Wire, weight: PublicParameter, bias: PublicParameter) -> Wire:
    integers = weight.integers.reshape(-1, weight.shape[-1])
    shifted = bias.integers.astype(object) << rows.bits
    return rows.matrix(integers, weight.bits).plus(shifted)


def _settled_input(layer: Layer, values: Wire) -> Wire:
    bits = layer.builder.rules.value_bits
    return layer.builder.settled_exactly(f"{layer.name}.input", values, bits)


def _settled_errors(layer: Layer, errors: Wire) -> Wire:
    return layer.builder.settled(f"{layer.name}.errors", errors, layer.builder.rules.error_bits)


def _proved_dense(
    layer: Layer, values: Wire, weight: PublicParameter, bias: PublicParameter
) -> Proved:
    rows = _settled_input(layer, values)

    def backward(errors: Wire) -> tuple[Wire]:
        settled = _settled_errors(layer, errors)
        layer.gradient(weight, rows, settled)
        layer.gradient(bias, None, settled)
        return (settled.matrix(weight.integers.T, weight.bits),)

    return Proved(_product_with_bias(rows, weight, bias), backward)


@cache
def _windows(shape: Shape, side: int, padding: int) -> NDArray[np.intp]:
    """Return the places of the values of all windows: a row for each, in the filters' order."""
    batch, height, width, channels = shape
    places = np.arange(batch * height * width * channels).reshape(shape)
    around = (padding, padding)
    padded = np.pad(places, ((0, 0), around, around, (0, 0)), constant_values=PADDING)
    view: Any = np.lib.stride_tricks.sliding_window_view  # the stubs allow one axis only
    found = view(padded, (side, side), axis=(1, 2))
    ordered = found.transpose(0, 1, 2, 4, 5, 3)  # batch, height, width, row, column, channel
    return np.ascontiguousarray(ordered.reshape(-1, side * side * channels))


def _convolution_forward(x: Array, weight: Array, bias: Array) -> tuple[Array, tuple[Array, Array]]:
    batch, height, width, _ = x.shape
    side, outputs = weight.shape[0], weight.shape[3]
    unfolded = _patches(x, side)
    flat = unfolded @ _patch_matrix(weight) + bias
    shape = (batch, height - side + 1, width - side + 1, outputs)
    return flat.reshape(shape), (unfolded, weight)


def _convolution_backward(
    kept: tuple[Array, Array], cotangent: Array
) -> tuple[Array, Array, Array]:
    """Compute the input's gradient as a convolution with the flipped kernel."""
    import jax.numpy as jnp

    unfolded, weight = kept
    side, _, inputs, outputs = weight.shape
    flat = cotangent.reshape(-1, outputs)
    padded = _padded(cotangent, side - 1)
    turned = weight[::-1, ::-1].transpose(0, 1, 3, 2)
    batch, height, width, _ = padded.shape
    shape = (batch, height - side + 1, width - side + 1, inputs)
    of_input = (_patches(padded, side) @ _patch_matrix(turned)).reshape(shape)
    return of_input, _kernel_of(unfolded.T @ flat, side, inputs), jnp.sum(flat, axis=0)


def _padded(images: Array, padding: int) -> Array:
    import jax.numpy as jnp

    around = (padding, padding)
    return jnp.pad(images, ((0, 0), around, around, (0, 0)))


def _patches(x: Array, size: int) -> Array:
    """Unfold images (batch, height, width, channels) for a convolution as a matrix product.

    A row holds one window, ordered by column, row and channel. Slicing rows first and then columns
    takes 2 * size slices instead of size squared.
    """
    import jax.numpy as jnp

    batch, height, width, channels = x.shape
    out_height, out_width = height - size + 1, width - size + 1
    rows = jnp.concatenate([x[:, i : i + out_height] for i in range(size)], axis=3)
    both = jnp.concatenate([rows[:, :, j : j + out_width] for j in range(size)], axis=3)
    return both.reshape(batch * out_height * out_width, size * size * channels)


def _patch_matrix(kernel: Array) -> Array:
    """Arrange a kernel (height, width, in, out) so that it multiplies `_patches`."""
    height, width, inputs, outputs = kernel.shape
    return kernel.transpose(1, 0, 2, 3).reshape(height * width * inputs, outputs)


def _kernel_of(matrix: Array, size: int, inputs: int) -> Array:
    """Return the kernel of a patch matrix: the inverse of `_patch_matrix`."""
    return matrix.reshape(size, size, inputs, -1).transpose(1, 0, 2, 3)


class AveragePool(Operation):
    """Returns the means of 2 by 2 blocks of (batch, height, width, channels), both sides even."""

    def shape(self, images: Shape) -> Shape:
        fits = len(images) == 4 and images[1] % 2 == images[2] % 2 == 0
        require(fits, "(batch, height, width, channels) with even height and width", images)
        batch, height, width, channels = images
        return batch, height // 2, width // 2, channels

    def torch(self, images: Tensor) -> Tensor:
        from torch.nn.functional import avg_pool2d

        return avg_pool2d(images.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)

    def jax(self, images: Array) -> Array:
        batch, height, width, channels = images.shape
        squares = images.reshape(batch, height // 2, 2, width // 2, 2, channels)
        return squares.mean((2, 4))

    def mpc(self, images: Array) -> Array:
        """Add up, and multiply once by a public quarter."""
        pooled: Array = with_gradient(_pool_forward, _pool_backward)(images)
        return pooled

    takes_products = True

    def prove(self, layer: Layer, images: Wire | Quadratic) -> Proved:
        """Add up, and read the sum with two more fraction bits."""
        squares = _squares(images.shape)

        def backward(errors: Wire) -> tuple[Wire]:
            places = np.empty(squares.size, np.intp)
            places[squares] = np.arange(errors.size).reshape(errors.shape)[..., None]
            return (errors.gather(places.reshape(images.shape)).divided(2),)

        return Proved(images.gather(squares).sum(-1).divided(2), backward)


@cache
def _squares(shape: Shape) -> NDArray[np.intp]:
    """Return the places of the four values of every 2 by 2 block, on the last axis."""
    batch, height, width, channels = shape
    places = np.arange(batch * height * width * channels)
    blocks = places.reshape(batch, height // 2, 2, width // 2, 2, channels)
    ordered = blocks.transpose(0, 1, 3, 5, 2, 4)
    return np.ascontiguousarray(ordered.reshape(batch, height // 2, width // 2, channels, 4))


def _pool_forward(x: Array) -> tuple[Array, None]:
    return _sum_pool(x) * 0.25, None


def _pool_backward(_: None, cotangent: Array) -> tuple[Array]:
    """Scale before spreading, on a quarter of the values."""
    return (_spread(cotangent * 0.25),)


def _sum_pool(x: Array) -> Array:
    batch, height, width, channels = x.shape
    pairs = x.reshape(batch, height // 2, 2, width * channels)
    rows = pairs[:, :, 0] + pairs[:, :, 1]
    pairs = rows.reshape(batch, height // 2, width // 2, 2, channels)
    return pairs[:, :, :, 0] + pairs[:, :, :, 1]


def _spread(x: Array) -> Array:
    """Repeat every value in a window of 2 x 2: the transpose of `_sum_pool`."""
    import jax.numpy as jnp

    batch, height, width, channels = x.shape
    shape = (batch, height, 2, width, 2, channels)
    repeated = jnp.broadcast_to(x[:, :, None, :, None, :], shape)
    return repeated.reshape(batch, 2 * height, 2 * width, channels)
