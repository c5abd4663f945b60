"""Real numbers as ring words: round-half-even(x * scale * 2^f).

The scale is a power of two, so that the product is exact in float64 and a quantum is, too.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from opfl_chain.protocol.errors import EncodingError
from opfl_chain.protocol.ring import Words, ring_words

Reals: TypeAlias = npt.NDArray[np.float64]
Shape: TypeAlias = tuple[int, ...]

WORD_LIMIT: Final = 1 << 62
"""Words stay below this magnitude, so that the sum and the difference of two do not wrap around."""

_MAX_FRACTION_BITS: Final = 61
_MAX_SCALE: Final = 1 << 32


@dataclass(frozen=True)
class FixedPoint:
    """How many fraction bits words have, and by what real numbers are multiplied before."""

    fraction_bits: int
    scale: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.fraction_bits <= _MAX_FRACTION_BITS:
            raise EncodingError(
                f"fraction bits are {self.fraction_bits}, they must be in [0, {_MAX_FRACTION_BITS}]"
            )
        if not 1 <= self.scale <= _MAX_SCALE or self.scale & (self.scale - 1):
            raise EncodingError(f"scale is {self.scale}, it must be a power of two in [1, 2^32]")

    @property
    def words_per_unit(self) -> int:
        """The word of 1: scale * 2^f."""
        return self.scale << self.fraction_bits

    @property
    def quantum(self) -> float:
        """What one word is worth: 2^-f / scale, exactly."""
        return 1.0 / self.words_per_unit

    def encode(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Words:
        """Encode arrays by parameter name, in the order given, as one flat array of words."""
        if not arrays:
            raise EncodingError("there is nothing to encode: no arrays were given")
        words = [self.encode_array(name, array) for name, array in arrays.items()]
        return ring_words("all arrays together", np.concatenate(words))

    def encode_array(self, name: str, array: npt.NDArray[Any]) -> Words:
        """Encode one array, flattened with the last axis fastest; ``name`` is for errors."""
        if array.dtype.kind != "f" or array.dtype.itemsize > 8:
            raise EncodingError(
                f"{name} has dtype {array.dtype}, only float16, float32 and float64 are encoded"
            )
        with np.errstate(over="ignore", invalid="ignore"):  # what they hide is refused below
            scaled = array.astype(np.float64).ravel() * float(self.words_per_unit)
        fits = np.abs(scaled) < WORD_LIMIT  # False for nan
        if not fits.all():
            raise EncodingError(self._refusal(name, array, int(np.argmin(fits))))
        words: Words = np.rint(scaled).astype("<i8")
        return words

    def nearest(self, array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the nearest numbers that words hold. Of float32 these are float32, exactly."""
        scaled = array.astype(np.float64) * float(self.words_per_unit)
        nearest: npt.NDArray[np.float32] = (np.rint(scaled) * self.quantum).astype(np.float32)
        return nearest

    def decode(self, words: npt.NDArray[Any], shapes: Mapping[str, Shape]) -> dict[str, Reals]:
        """Return the arrays that ``words`` encode, given their shapes in the same order."""
        sizes = {name: math.prod(shape) for name, shape in shapes.items()}
        total = sum(sizes.values())
        if words.size != total:
            raise EncodingError(f"got {words.size:,} words for arrays of {total:,} numbers")
        reals = self.decode_words(words)
        arrays, start = {}, 0
        for name, shape in shapes.items():
            arrays[name] = reals[start : start + sizes[name]].reshape(shape)
            start += sizes[name]
        return arrays

    def decode_words(self, words: npt.NDArray[Any]) -> Reals:
        """Return what each word is worth: exact up to 2^53 words, the nearest float64 beyond."""
        reals: Reals = ring_words("words", words).astype(np.float64) * self.quantum
        return reals

    def _refusal(self, name: str, array: npt.NDArray[Any], position: int) -> str:
        index = np.unravel_index(position, array.shape)
        value = float(array[index])
        place = f"{name}[{', '.join(map(str, index))}]" if index else name
        if not math.isfinite(value):
            return f"{place} is {value}"
        return (
            f"{place} is {value:g}: with {self.fraction_bits} fraction bits and scale {self.scale}"
            f" magnitudes must be below {WORD_LIMIT / self.words_per_unit:g}"
        )
