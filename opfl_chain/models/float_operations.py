"""The operations as JAX users write them: what MPC is compared with."""

from __future__ import annotations

import jax


class FloatOperations:
    """Plain JAX. `Operations` documents the methods."""

    def convolution(
        self, examples: jax.Array, weight: jax.Array, bias: jax.Array, *, padding: int, name: str
    ) -> jax.Array:
        del name
        around = (padding, padding)
        return bias + jax.lax.conv_general_dilated(
            examples, weight, (1, 1), (around, around), dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def dense(
        self, examples: jax.Array, weight: jax.Array, bias: jax.Array, *, name: str
    ) -> jax.Array:
        del name
        return examples @ weight + bias

    def relu(self, values: jax.Array, *, name: str) -> jax.Array:
        del name
        positive: jax.Array = jax.nn.relu(values)
        return positive

    def average_pool(self, images: jax.Array, *, name: str) -> jax.Array:
        del name
        batch, height, width, channels = images.shape
        squares = images.reshape(batch, height // 2, 2, width // 2, 2, channels)
        return squares.mean((2, 4))
