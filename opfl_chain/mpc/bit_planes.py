"""Between words and bit planes: the same bits, in the order that a computation wants them.

These are permutations of bits, so members apply them to their own components.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

WORD_BITS = 64


def planes_of(words: Words, bits: int) -> Words:
    """Return the low `bits` planes of n words: plane j holds bit j of all, 64 to a word.

    The last word of a plane is filled up with zeros.
    """
    count = words.shape[0]
    used = -(-bits // 8)
    bytes_ = words.view(np.uint8).reshape(count, 8)[:, :used]
    single = np.unpackbits(bytes_, axis=1, count=bits, bitorder="little")
    packed = np.packbits(single.T, axis=1, bitorder="little")
    padded = np.zeros((bits, word_count(count) * 8), np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)


def words_of(planes: Words, count: int) -> Words:
    """Return `count` words of which bit j is in plane j; the inverse of `planes_of`."""
    bits = planes.shape[0]
    single = np.unpackbits(
        np.ascontiguousarray(planes).view(np.uint8), axis=1, count=count, bitorder="little"
    )
    packed = np.packbits(single.T, axis=1, bitorder="little")
    padded = np.zeros((count, 8), np.uint8)
    padded[:, : -(-bits // 8)] = packed
    return padded.view(np.uint64).reshape(count)


def word_count(bits: int) -> int:
    """Return how many words hold so many bits."""
    return -(-bits // WORD_BITS)


def full_lanes(count: int) -> Words:
    """Return a plane that is one for each of `count` values and zero behind them."""
    plane = np.full(word_count(count), np.uint64(0xFFFFFFFFFFFFFFFF))
    if used := count % WORD_BITS:
        plane[-1] = np.uint64((1 << used) - 1)
    return plane
