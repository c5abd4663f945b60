"""The operations that a model's JAX form is made of.

A model says what it computes and not how: the same definition runs in floating point, in the way
that any JAX user would write it, and under MPC, where other ways are faster and more exact.
"""

from __future__ import annotations

from typing import Any, Protocol


class Operations(Protocol):
    """`name` is that of the layer, for implementations that treat layers apart."""

    def convolution(self, examples: Any, weight: Any, bias: Any, *, padding: int, name: str) -> Any:
        """(batch, height, width, in) by (side, side, in, out), stride 1, zeros around."""

    def dense(self, examples: Any, weight: Any, bias: Any, *, name: str) -> Any:
        """(batch, in) by (in, out)."""

    def relu(self, values: Any, *, name: str) -> Any:
        """max(x, 0), with gradient 0 at 0."""

    def average_pool(self, images: Any, *, name: str) -> Any:
        """The mean of squares of 2 by 2, over even height and width."""
