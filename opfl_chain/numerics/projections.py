"""Projections of vectors onto random ternary vectors, whose entries are tosses of two coins.

The toss of projection k and element i is b0 - b1 for two uniform bits: 0 with probability 1/2, and
1 and -1 with probability 1/4 each. The bits come as one string: for each 8 elements as many bytes
of bits b0 as there are projections, then as many of bits b1; bit b of byte k is for element b of
the 8, and for projection k.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from opfl_chain.numerics import kernels
from opfl_chain.numerics.field import Elements, FieldError
from opfl_chain.numerics.kernels import GROUP, LANES

_MAX_COUNT: Final = 1 << 16
"""Sums of so many pieces of coefficients stay below 2^62."""


def coin_bytes(elements: int, count: int) -> int:
    """Return the size of the string of coins for ``count`` projections of ``elements``."""
    if count % 8 or not 0 < count <= _MAX_COUNT:
        raise FieldError(
            f"{count} projections, their number must be a multiple of 8 up to {_MAX_COUNT:,}"
        )
    if elements < 0:
        raise FieldError(f"{elements} elements, their number must not be negative")
    return _groups(elements) * 2 * count


def project(values: Elements, coins: bytes, count: int) -> Elements:
    """Return ``count`` sums over i of coin[k, i] values[i], for flat values."""
    if values.ndim != 1:
        raise FieldError(f"values have shape {values.shape}, they must be flat")
    checked = _coins(coins, values.size, count)
    pieces = np.zeros((_groups(values.size) * GROUP, LANES), np.int64)
    kernels.take_apart(values.limbs, pieces)
    sums = Elements.zeros(count)
    kernels.project(pieces, checked, sums.limbs)
    return sums


def project_words(
    words: npt.NDArray[np.uint64], coins: bytes, count: int
) -> npt.NDArray[np.uint64]:
    """Return the same sums of words modulo 2^64."""
    if words.dtype != np.uint64 or words.ndim != 1:
        raise FieldError(
            f"words have dtype {words.dtype} and shape {words.shape}, they must be flat uint64"
        )
    checked = _coins(coins, words.size, count)
    padded = np.zeros(_groups(words.size) * GROUP, np.uint64)
    padded[: words.size] = words
    sums = np.zeros(count, np.uint64)
    kernels.project_words(padded, checked, sums)
    return sums


def mix(coefficients: Elements, coins: bytes, elements: int) -> Elements:
    """Return for each element i the sum over k of coefficients[k] coin[k, i]."""
    if coefficients.ndim != 1:
        raise FieldError(f"coefficients have shape {coefficients.shape}, they must be flat")
    checked = _coins(coins, elements, coefficients.size)
    pieces = np.empty((coefficients.size, LANES), np.int64)
    kernels.take_apart(coefficients.limbs, pieces)
    mixed = Elements.zeros(_groups(elements) * GROUP)
    kernels.mix(pieces, checked, mixed.limbs)
    return mixed[:elements]


def _groups(elements: int) -> int:
    return -(-elements // GROUP)


def _coins(coins: bytes, elements: int, count: int) -> npt.NDArray[np.uint8]:
    expected = coin_bytes(elements, count)
    if len(coins) != expected:
        raise FieldError(
            f"got {len(coins):,} bytes of coins, {count} projections of {elements:,} elements"
            f" take {expected:,}"
        )
    checked = np.frombuffer(coins, np.uint8)
    checked.flags.writeable = False  # kernels are compiled for the array of a bytes object
    return checked
