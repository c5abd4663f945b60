"""One member's share of an array.

SPU stores a secret array in one of two forms, named in every share: components that add up modulo
2^64 (`AShr`), or bits under exclusive or (`BShr`, the result of a comparison). In both, member r
holds components r and r + 1, side by side for each element. A result that depends on no secret is
public, with one word per element.
"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opfl_chain.mpc.session.errors import ShareInvalid
from opfl_chain.mpc.session.ranks import MEMBERS, Rank
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.ring import FixedPoint

Words = npt.NDArray[Any]
"""Unsigned integers of 64 bits, or fewer in boolean shares of few bits."""

ARITHMETIC: Final = "aby3.AShr<FM64>"
PUBLIC: Final = "Pub2k<FM64>"
_BOOLEAN = re.compile(r"aby3\.BShr<PT_U(8|16|32|64),([1-9][0-9]?)>")
_WORD = np.dtype("<u8")
_MAX_AXES = 31
"""numpy allows 32, and a share's words have one more than its array."""
_MAX_ELEMENTS = 1 << 58

DTYPES: Final = (
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float32", "float64"),
)
"""Types that programs compute on. Both floats are fixed point, in words of the ring."""


@dataclass(frozen=True)
class Storage:
    """Storage form of elements, by SPU's name."""

    name: str

    @cached_property
    def bits(self) -> int:
        """The bits of a boolean share; 64 for all other forms."""
        found = _BOOLEAN.fullmatch(self.name)
        return int(found[2]) if found else _WORD.itemsize * 8

    @cached_property
    def word(self) -> np.dtype[Any]:
        """The type of one component of an element."""
        found = _BOOLEAN.fullmatch(self.name)
        if found and self.bits <= int(found[1]):
            return np.dtype(f"<u{int(found[1]) // 8}")
        if self.name in (ARITHMETIC, PUBLIC):
            return _WORD
        raise ShareInvalid(
            f"storage {self.name!r} is not one of {ARITHMETIC}, {PUBLIC} and aby3.BShr<PT_U*,*>."
            " Sessions work with ABY3 in the ring modulo 2^64 only."
        )

    @property
    def is_public(self) -> bool:
        return self.name == PUBLIC

    @property
    def is_arithmetic(self) -> bool:
        return self.name == ARITHMETIC

    def words_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of `words`. Raises ShareInvalid for one that numpy does not support."""
        if len(shape) > _MAX_AXES:
            raise ShareInvalid(f"the shape has {len(shape)} axes, at most {_MAX_AXES} are allowed")
        if 0 in shape and math.prod(filter(None, shape)) > _MAX_ELEMENTS:
            raise ShareInvalid(f"the other sides of the empty shape {shape} are too long")
        return shape if self.is_public else (*shape, 2)


@dataclass(frozen=True, eq=False)
class Share:
    """A member's share. `words` has one more axis than `shape`, for the two components."""

    rank: Rank
    dtype: str
    shape: tuple[int, ...]
    storage: Storage
    words: Words

    def __post_init__(self) -> None:
        if self.rank not in range(MEMBERS):
            raise ShareInvalid(f"rank is {self.rank}, members have ranks 0, 1 and 2")
        if self.dtype not in DTYPES:
            raise ShareInvalid(f"dtype is {self.dtype!r}, it must be one of {', '.join(DTYPES)}")
        expected = self.storage.words_shape(self.shape)
        if self.words.shape != expected or self.words.dtype != self.storage.word:
            raise ShareInvalid(
                f"words are {self.words.dtype} of shape {self.words.shape}; {self.storage.name} of"
                f" shape {self.shape} has {self.storage.word} of shape {expected}"
            )

    @property
    def components(self) -> tuple[Words, Words]:
        """The two components that this member holds: r and r + 1."""
        if self.storage.is_public:
            raise ShareInvalid("a public value has no components: it is `words`")
        return self.words[..., 0], self.words[..., 1]


def arithmetic_share(rank: Rank, first: Words, second: Words, dtype: str = "int64") -> Share:
    """Return the share with the components `rank` and `rank` + 1 of an array.

    For a float the sum of the components is in fixed point, with the policy's fraction bits.
    """
    for component in (first, second):
        if component.dtype.kind not in "iu" or component.dtype.itemsize != _WORD.itemsize:
            raise ShareInvalid(f"a component has dtype {component.dtype}, it must be 64-bit words")
    if first.shape != second.shape:
        raise ShareInvalid(f"components have shapes {first.shape} and {second.shape}")
    words = np.stack([first, second], axis=-1).astype(_WORD, copy=False)
    return Share(rank, dtype, first.shape, Storage(ARITHMETIC), words)


def encode(array: Words, fraction_bits: int, name: str = "array") -> Words:
    """Return an array's ring words; reals in the protocol's encoding, so SPU does not round."""
    if str(array.dtype) not in DTYPES:
        raise ShareInvalid(f"{name} has dtype {array.dtype}, it must be one of {', '.join(DTYPES)}")
    if array.dtype.kind != "f":
        return array.astype("<i8").view("<u8")
    if not array.size:
        return np.zeros(array.shape, "<u8")
    try:
        words = FixedPoint(fraction_bits).encode_array(name, array)
    except ProtocolError as error:
        raise ShareInvalid(str(error)) from error
    return words.view("<u8").reshape(array.shape)


def decode(words: Words, dtype: str, fraction_bits: int) -> Words:
    """Return the numbers that ring words encode."""
    if dtype == "bool":
        return (words & np.uint64(1)).astype(bool)
    signed = words.astype("<u8", copy=False).view("<i8")
    if np.dtype(dtype).kind == "f":
        return (signed / 2.0**fraction_bits).astype(dtype)
    return signed.astype(dtype)


def public_share(rank: Rank, array: Words, fraction_bits: int, name: str = "array") -> Share:
    """Return the share that every member passes for a public input."""
    words = encode(array, fraction_bits, name)
    return Share(rank, str(array.dtype), array.shape, Storage(PUBLIC), words)


def split(
    array: Words, fraction_bits: int, random: Callable[[int], bytes] = secrets.token_bytes
) -> tuple[Share, Share, Share]:
    """Return the three members' shares of an array, for tests and benches."""
    words = encode(array, fraction_bits)
    first, second = (
        np.frombuffer(random(words.nbytes), "<u8").reshape(words.shape) for _ in range(2)
    )
    components = (first, second, words - first - second)
    shares = (
        arithmetic_share(rank, components[rank], components[(rank + 1) % MEMBERS], str(array.dtype))
        for rank in range(MEMBERS)
    )
    zero, one, two = shares
    return zero, one, two


def combine(share: Share, missing: Words) -> Words:
    """Return the ring words of a secret from a member's share and the missing component."""
    first, second = share.components
    if share.storage.is_arithmetic:
        return first + second + missing
    mask = np.uint64((1 << share.storage.bits) - 1)
    return (first ^ second ^ missing).astype("<u8") & mask
