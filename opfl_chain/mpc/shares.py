"""What one member holds of one array.

SPU keeps a secret array in one of two forms, whose names it puts in every share: components that
add up modulo 2^64 (`AShr`), or bits under exclusive or (`BShr`, which a comparison yields). Either
way member r holds components r and r + 1, side by side for each element. A result that depends on
no secret is public, one word an element.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opfl_chain.mpc.errors import ShareInvalid
from opfl_chain.mpc.ranks import MEMBERS, Rank

Words = npt.NDArray[Any]
"""Unsigned integers, of 64 bits but for boolean shares of few bits."""

ARITHMETIC: Final = "aby3.AShr<FM64>"
PUBLIC: Final = "Pub2k<FM64>"
_BOOLEAN = re.compile(r"aby3\.BShr<PT_U(8|16|32|64),([1-9][0-9]?)>")
_WORD = np.dtype("<u8")
_MOST_AXES = 31
"""numpy has arrays of 32, and shares have one more than what they are shares of."""
_MOST_ELEMENTS = 1 << 58

DTYPES: Final = (
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float32", "float64"),
)
"""What programs compute on. Both floats are fixed point, in words of the ring."""


@dataclass(frozen=True)
class Storage:
    """How elements are held, by SPU's name of it."""

    name: str

    @cached_property
    def bits(self) -> int:
        """The bits of a boolean share, 64 for all else."""
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
        """Raises ShareInvalid for a shape that numpy does not have, though it may take no bytes."""
        if len(shape) > _MOST_AXES:
            raise ShareInvalid(f"the shape has {len(shape)} axes, there can be {_MOST_AXES}")
        if 0 in shape and math.prod(filter(None, shape)) > _MOST_ELEMENTS:
            raise ShareInvalid(f"the other sides of the empty shape {shape} are too long")
        return shape if self.is_public else (*shape, 2)


@dataclass(frozen=True, eq=False)
class Share:
    """A member's part of an array. `words` has one more axis than `shape`, for its components."""

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
    """The share of an array of which this member was sent components `rank` and `rank` + 1.

    For a float the sum of the components is in fixed point, with the policy's fraction bits.
    """
    for component in (first, second):
        if component.dtype.kind not in "iu" or component.dtype.itemsize != _WORD.itemsize:
            raise ShareInvalid(f"a component has dtype {component.dtype}, it must be 64-bit words")
    if first.shape != second.shape:
        raise ShareInvalid(f"components have shapes {first.shape} and {second.shape}")
    words = np.stack([first, second], axis=-1).astype(_WORD, copy=False)
    return Share(rank, dtype, first.shape, Storage(ARITHMETIC), words)
