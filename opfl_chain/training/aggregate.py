"""From the sum that the committee opens to the gradient of an update, and the hash of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.protocol.fixed_point import FixedPoint
from opfl_chain.protocol.hashing import TAG_WEIGHTS, keccak256
from opfl_chain.protocol.ring import Words
from opfl_chain.training.errors import UpdateInvalid


def mean_gradient(total: Words, contributions: int, fixed_point: FixedPoint) -> NDArray[np.float32]:
    """The mean of gradients from the ring sum of their words, as float32.

    The sum is exact, so all who know it get the same bytes.
    """
    if contributions < 1:
        raise UpdateInvalid(f"a mean of {contributions} gradients: a round without any has none")
    mean = fixed_point.decode_words(total) / float(contributions)
    return mean.astype(np.float32)


def weights_hash(weights: NDArray[Any]) -> bytes:
    """keccak256 of tag, length as 8 big-endian bytes, and the flat weights as <f4."""
    if weights.ndim != 1 or weights.dtype != np.float32:
        raise UpdateInvalid(
            f"weights have shape {weights.shape} and dtype {weights.dtype}, hashed are flat float32"
        )
    return keccak256(TAG_WEIGHTS, weights.size.to_bytes(8, "big"), weights.astype("<f4").tobytes())
