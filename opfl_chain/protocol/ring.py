"""Words of the ring modulo 2^64, the form of all shares, and real numbers encoded as words."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from opfl_chain.protocol.errors import EncodingError

RING_WORD_BYTES: Final = 8

Words: TypeAlias = npt.NDArray[np.int64]
"""Ring words read as two's complement."""

UnsignedWords: TypeAlias = npt.NDArray[np.uint64]
"""The same words read as unsigned integers, whose arithmetic wraps around."""
Reals: TypeAlias = npt.NDArray[np.float64]
Shape: TypeAlias = tuple[int, ...]
WORD_LIMIT: Final = 1 << 62
"""Words stay below this magnitude, so the sum and difference of two words do not wrap around."""
_MAX_FRACTION_BITS: Final = 61
_MAX_SCALE: Final = 1 << 32


def ring_words(name: str, values: npt.NDArray[Any]) -> Words:
    """Return ``values`` as little-endian words if they are a flat array of 64-bit integers."""
    return unsigned_words(name, values).view("<i8")


def unsigned_words(name: str, values: npt.NDArray[Any]) -> UnsignedWords:
    """Return ``values`` as little-endian unsigned words if they are flat 64-bit integers."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize != RING_WORD_BYTES:
        raise EncodingError(f"{name} has dtype {values.dtype}, ring words must be int64 or uint64")
    if values.ndim != 1 or not values.size:
        raise EncodingError(
            f"{name} has shape {values.shape}, it must be a flat array of one or more ring words"
        )
    return np.ascontiguousarray(values).astype("<u8", copy=False)


def bytes_of_words(name: str, values: npt.NDArray[Any]) -> bytes:
    """Return the canonical bytes of ring words: eight a word, little-endian."""
    return unsigned_words(name, values).tobytes()


def words_of_bytes(name: str, data: bytes) -> Words:
    """Read ring words from their canonical bytes."""
    if not data or len(data) % RING_WORD_BYTES:
        raise EncodingError(
            f"{name} has {len(data)} bytes, it must be one or more whole words"
            f" of {RING_WORD_BYTES} bytes"
        )
    return np.frombuffer(data, dtype="<i8")


@dataclass(frozen=True)
class FixedPoint:
    """The fraction bits of words, and the scale that multiplies real numbers before encoding."""

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
        """The value of the word 1: 2^-f / scale, exactly."""
        return 1.0 / self.words_per_unit

    def encode(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Words:
        """Encode arrays by parameter name, in the order given, as one flat array of words."""
        if not arrays:
            raise EncodingError("nothing to encode: no arrays were given")
        words = [self.encode_array(name, array) for name, array in arrays.items()]
        return ring_words("all arrays together", np.concatenate(words))

    def encode_array(self, name: str, array: npt.NDArray[Any]) -> Words:
        """Encode one array, flattened with the last axis fastest; ``name`` is for errors."""
        if array.dtype.kind != "f" or array.dtype.itemsize > 8:
            raise EncodingError(
                f"{name} has dtype {array.dtype}, only float16, float32 and float64 are encoded"
            )
        with np.errstate(over="ignore", invalid="ignore"):  # overflow and nan are refused below
            scaled = array.astype(np.float64).ravel() * float(self.words_per_unit)
        fits = np.abs(scaled) < WORD_LIMIT  # False for nan
        if not fits.all():
            raise EncodingError(self._refusal(name, array, int(np.argmin(fits))))
        words: Words = np.rint(scaled).astype("<i8")
        return words

    def nearest(self, array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the nearest numbers that words represent; float32 stays exact in float32."""
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
        """Return the value of each word: exact up to 2^53 words, the nearest float64 beyond."""
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
