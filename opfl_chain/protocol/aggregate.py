"""The sum of the accepted contributions of a round, opened from components, and its mean.

Each member adds up the two components that it holds of every accepted gradient. The components of
the sum are uniform apart from the sum itself, so publishing all three reveals only the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.delivery import Held
from opfl_chain.protocol.errors import AggregateError, ShareError
from opfl_chain.protocol.hashing import TAG_AGGREGATE, TAG_WEIGHTS, keccak256
from opfl_chain.protocol.ring import (
    FixedPoint,
    UnsignedWords,
    Words,
    bytes_of_words,
    unsigned_words,
)

NOTHING: Final = np.zeros(0, dtype="<i8")
"""The aggregate of a round that opens nothing: the model stays as it was."""


def sum_components(accepted: Iterable[Held], fewest: int) -> Held:
    """Add up the components that one member holds of the accepted contributions.

    They are taken one after the other: together they may not fit into memory. The terms of the job
    say how many contributions a sum has at least, since one of few reveals them. In the scheme
    ``mpc``, pass them without the words of the salt, which must not be opened.
    """
    total: Held | None = None
    count = 0
    for held in accepted:
        count += 1
        if total is None:
            total = held[0].copy(), held[1].copy()
            continue
        _check_sizes("accepted contributions", [*total, *held])
        for sums, part in zip(total, held, strict=True):
            sums += part
    if total is None or count < fewest:
        raise ShareError(
            f"a sum of {count} contributions is not opened, the terms ask for at least {fewest}"
        )
    _check_sizes("accepted contributions", total)
    return total


def open_sum(components: Mapping[int, UnsignedWords]) -> Words:
    """Return the sum from its three components, by index."""
    if sorted(components) != list(range(COMPONENTS)):
        raise ShareError(f"got components {sorted(components)} of a sum, expected 0, 1 and 2")
    x0, x1, x2 = (
        unsigned_words(f"component {index} of a sum", components[index])
        for index in range(COMPONENTS)
    )
    _check_sizes("components of a sum", [x0, x1, x2])
    return (x0 + x1 + x2).view("<i8")


def aggregate_hash(words: Words) -> bytes:
    """Return keccak256 of tag, number of words as 8 big-endian bytes, and the words."""
    data = bytes_of_words("aggregate", words) if words.size else b""
    return keccak256(TAG_AGGREGATE, words.size.to_bytes(8, "big"), data)


def _check_sizes(name: str, arrays: Sequence[UnsignedWords]) -> None:
    sizes = {array.size for array in arrays}
    if len(sizes) != 1:
        counts = ", ".join(f"{size:,}" for size in sorted(sizes))
        raise ShareError(f"{name} have {counts} words, they must have the same size")


def mean_gradient(total: Words, contributions: int, fixed_point: FixedPoint) -> NDArray[np.float32]:
    """Return the mean of gradients from the ring sum of their words, as float32.

    The sum is exact, so everybody computes the same bytes.
    """
    if contributions < 1:
        raise AggregateError(f"a mean of {contributions} gradients is undefined: give at least 1")
    mean = fixed_point.decode_words(total) / float(contributions)
    return mean.astype(np.float32)


def weights_hash(weights: NDArray[Any]) -> bytes:
    """Return keccak256 of tag, length as 8 big-endian bytes, and the flat weights as <f4."""
    if weights.ndim != 1 or weights.dtype != np.float32:
        raise AggregateError(
            f"weights have shape {weights.shape} and dtype {weights.dtype}, expected flat float32"
        )
    return keccak256(TAG_WEIGHTS, weights.size.to_bytes(8, "big"), weights.astype("<f4").tobytes())
