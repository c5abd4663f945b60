"""Products of numbers with few bits, summed in float32: stand-ins for GPUs of other kinds.

TF32 and bf16 units round the factors of every product to 10 and 7 bits behind the leading one, in
training's forward and backward pass alike. Everything else stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from opfl_chain.models.float_operations import FloatOperations

TF32_BITS = 10
BF16_BITS = 7
_FLOAT32_BITS = 23

Product = Callable[[Any, Any], Any]


def rounded(values: Any, bits: int) -> Any:
    """The nearest float32 with so many bits behind the leading one, ties to even."""
    dropped = _FLOAT32_BITS - bits
    words = jax.lax.bitcast_convert_type(values, jnp.uint32)
    odd = (words >> dropped) & 1
    words = (words + ((1 << (dropped - 1)) - 1) + odd) >> dropped << dropped
    return jax.lax.bitcast_convert_type(words, jnp.float32)


def of_few_bits(product: Product, bits: int) -> Product:
    """The product of rounded factors, whose derivatives are products of rounded factors too."""

    @jax.custom_vjp
    def narrow(left: Any, right: Any) -> Any:
        return product(rounded(left, bits), rounded(right, bits))

    def forward(left: Any, right: Any) -> tuple[Any, Any]:
        factors = rounded(left, bits), rounded(right, bits)
        return product(*factors), factors

    def backward(factors: Any, pulled: Any) -> Any:
        return jax.vjp(product, *factors)[1](rounded(pulled, bits))

    narrow.defvjp(forward, backward)
    return narrow


class NarrowOperations(FloatOperations):
    """Convolutions and dense layers by products of few bits."""

    def __init__(self, bits: int) -> None:
        self._bits = bits

    def convolution(
        self, examples: jax.Array, weight: jax.Array, bias: jax.Array, *, padding: int, name: str
    ) -> jax.Array:
        nothing = jnp.zeros_like(bias)

        def product(left: Any, right: Any) -> Any:
            return FloatOperations.convolution(
                self, left, right, nothing, padding=padding, name=name
            )

        convolved: jax.Array = of_few_bits(product, self._bits)(examples, weight)
        return bias + convolved

    def dense(
        self, examples: jax.Array, weight: jax.Array, bias: jax.Array, *, name: str
    ) -> jax.Array:
        del name
        multiplied: jax.Array = of_few_bits(jnp.matmul, self._bits)(examples, weight)
        return multiplied + bias
