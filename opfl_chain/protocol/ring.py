"""Words of the ring of integers modulo 2^64, as which all is shared and committed."""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from opfl_chain.protocol.errors import EncodingError

RING_WORD_BYTES: Final = 8

Words: TypeAlias = npt.NDArray[np.int64]
"""Ring words read as two's complement."""

UnsignedWords: TypeAlias = npt.NDArray[np.uint64]
"""The same words read as unsigned integers, whose arithmetic wraps around."""


def ring_words(name: str, values: npt.NDArray[Any]) -> Words:
    """Return ``values`` as little-endian words if they are a flat array of 64-bit integers."""
    return unsigned_words(name, values).view("<i8")


def unsigned_words(name: str, values: npt.NDArray[Any]) -> UnsignedWords:
    """Return ``values`` as little-endian unsigned words if they are flat 64-bit integers."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize != RING_WORD_BYTES:
        raise EncodingError(f"{name} has dtype {values.dtype}, ring words are int64 or uint64")
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
