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
from opfl_chain.protocol.ring import UnsignedWords, Words

FEWEST_CONTRIBUTIONS: Final = 2
"""A sum of one is that contribution itself, and is not opened."""

NOTHING: Final = np.zeros(0, dtype="<i8")
"""The aggregate of a round that opens nothing: the model stays as it was."""


def sum_components(accepted: Sequence[Held]) -> Held:
    """Add up the components that one member holds of the accepted contributions."""
    if len(accepted) < FEWEST_CONTRIBUTIONS:
        raise ShareError(
            f"a sum of {len(accepted)} contributions would show them: there must be"
            f" {FEWEST_CONTRIBUTIONS} at least"
        )
    own, following = (
        np.sum([held[part] for held in accepted], axis=0, dtype=np.uint64) for part in range(2)
    )
    return own, following


def open_sum(components: Mapping[int, UnsignedWords]) -> Words:
    """Return the sum from its three components, by index."""
    if sorted(components) != list(range(COMPONENTS)):
        raise ShareError(f"there are components {sorted(components)} of a sum, 0, 1 and 2 make it")
    sizes = {component.size for component in components.values()}
    if len(sizes) != 1:
        raise ShareError(
            f"components of a sum have {sorted(sizes)} words, they must be of one size"
        )
    x0, x1, x2 = (components[index] for index in range(COMPONENTS))
    return (x0 + x1 + x2).view("<i8")


def aggregate_hash(words: Words) -> bytes:
    """keccak256 of tag, number of words as 8 big-endian bytes, and the words."""
    return keccak256(TAG_AGGREGATE, words.size.to_bytes(8, "big"), words.astype("<i8").tobytes())
