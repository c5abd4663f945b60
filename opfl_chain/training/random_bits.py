"""Random numbers from a seed that are the same with every version of every library.

As initial parameters do, they come from SHAKE-256 of a domain, the seed and what they are for.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

_DOMAIN = b"opfl.v1.data"


def random_bytes(count: int, purpose: str, *numbers: int) -> NDArray[np.uint8]:
    """Bytes for a purpose, another sequence for any other purpose or numbers (seed first)."""
    label = ",".join((purpose, *(str(int(number)) for number in numbers))).encode()
    return np.frombuffer(hashlib.shake_256(_DOMAIN + label).digest(count), np.uint8)


def random_permutation(length: int, purpose: str, *numbers: int) -> NDArray[np.int64]:
    """0, 1, ..., length - 1 in random order: the order of as many random words."""
    words = random_bytes(8 * length, purpose, *numbers).view("<u8")
    return np.argsort(words, kind="stable").astype(np.int64)
