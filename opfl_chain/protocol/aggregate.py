"""What the accepted contributions of a round add up to, opened from components of the sum.

Each member adds up the two components that it holds of every accepted gradient. The components of
the sum are uniform but for the sum itself, so publishing all three tells no more than that.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from opfl_chain.protocol.delivery import Held
from opfl_chain.protocol.errors import ShareError
from opfl_chain.protocol.gradient import COMPONENTS
from opfl_chain.protocol.hashing import TAG_AGGREGATE, keccak256
from opfl_chain.protocol.ring import UnsignedWords, Words, bytes_of_words, unsigned_words

FEWEST_CONTRIBUTIONS: Final = 2
"""A sum of one is that contribution itself, and is not opened."""

NOTHING: Final = np.zeros(0, dtype="<i8")
"""The aggregate of a round that opens nothing: the model stays as it was."""


def sum_components(accepted: Sequence[Held]) -> Held:
    """Add up the components that one member holds of the accepted contributions.

    In the scheme ``mpc`` they come without the words of the salt, which are not to be opened.
    """
    if len(accepted) < FEWEST_CONTRIBUTIONS:
        raise ShareError(
            f"a sum of {len(accepted)} contributions would show them: there must be"
            f" {FEWEST_CONTRIBUTIONS} at least"
        )
    _check_sizes("accepted contributions", [part for held in accepted for part in held])
    own, following = (_added(parts) for parts in zip(*accepted, strict=True))
    return own, following


def open_sum(components: Mapping[int, UnsignedWords]) -> Words:
    """Return the sum from its three components, by index."""
    if sorted(components) != list(range(COMPONENTS)):
        raise ShareError(f"there are components {sorted(components)} of a sum, 0, 1 and 2 make it")
    x0, x1, x2 = (
        unsigned_words(f"component {index} of a sum", components[index])
        for index in range(COMPONENTS)
    )
    _check_sizes("components of a sum", [x0, x1, x2])
    return (x0 + x1 + x2).view("<i8")


def aggregate_hash(words: Words) -> bytes:
    """keccak256 of tag, number of words as 8 big-endian bytes, and the words."""
    data = bytes_of_words("aggregate", words) if words.size else b""
    return keccak256(TAG_AGGREGATE, words.size.to_bytes(8, "big"), data)


def _added(parts: Sequence[UnsignedWords]) -> UnsignedWords:
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def _check_sizes(name: str, arrays: Sequence[UnsignedWords]) -> None:
    sizes = {array.size for array in arrays}
    if len(sizes) != 1:
        counts = ", ".join(f"{size:,}" for size in sorted(sizes))
        raise ShareError(f"{name} have {counts} words, they must be of one size")
