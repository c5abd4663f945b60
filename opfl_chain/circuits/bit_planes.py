"""Conversion between words and bit planes.

It only permutes bits, so each member applies it to its own components.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

WORD_BITS = 64


_SWAPS = [
    (32, np.uint64(0x00000000FFFFFFFF)),
    (16, np.uint64(0x0000FFFF0000FFFF)),
    (8, np.uint64(0x00FF00FF00FF00FF)),
    (4, np.uint64(0x0F0F0F0F0F0F0F0F)),
    (2, np.uint64(0x3333333333333333)),
    (1, np.uint64(0x5555555555555555)),
]
"""Steps that transpose a 64 x 64 bit matrix: swap distance, and mask of each pair's low half."""


def planes_of(words: Words, bits: int) -> Words:
    """Return the low `bits` planes of n words: plane j holds bit j of all words, 64 to a word.

    The last word of a plane is padded with zeros.
    """
    count = words.shape[0]
    filled = np.zeros(word_count(count) * WORD_BITS, np.uint64)
    filled[:count] = words
    return _transposed(filled.reshape(-1, WORD_BITS).T)[:bits]


def words_of(planes: Words, count: int) -> Words:
    """Return `count` words of which bit j is in plane j; the inverse of `planes_of`."""
    bits, width = planes.shape
    filled = np.zeros((WORD_BITS, width), np.uint64)
    filled[:bits] = planes
    return np.ascontiguousarray(_transposed(filled).T).reshape(-1)[:count]


def _transposed(rows: Words) -> Words:
    """Return 64 rows in which bit i of word w of row j is bit j of word w of row i."""
    turned = np.array(rows, order="C")
    for distance, low in _SWAPS:
        pairs = turned.reshape(WORD_BITS // 2 // distance, 2, distance, -1)
        upper, lower, shift = pairs[:, 0], pairs[:, 1], np.uint64(distance)
        swapped = ((upper >> shift) ^ lower) & low
        lower ^= swapped
        upper ^= swapped << shift
    return turned


def word_count(bits: int) -> int:
    """Return the number of words that hold `bits` bits."""
    return -(-bits // WORD_BITS)


def full_lanes(count: int) -> Words:
    """Return a plane with ones in the first `count` lanes and zeros in the rest."""
    plane = np.full(word_count(count), np.uint64(0xFFFFFFFFFFFFFFFF))
    if used := count % WORD_BITS:
        plane[-1] = np.uint64((1 << used) - 1)
    return plane
