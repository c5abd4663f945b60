"""Loading of all kernels at once, before a process is copied or its time is measured."""

from __future__ import annotations

import numpy as np

from opfl_chain.numerics.field import Elements
from opfl_chain.numerics.projections import mix, project, project_words

_COINS = bytes(16)
"""Coins of eight projections of eight elements."""


def load_kernels() -> None:
    """Call every kernel once: numba compiles it, or loads it from its cache."""
    integers = np.arange(8)
    x = Elements.of_integers(integers)
    square = x.reshape(2, 4)
    for each in (x + x, x - x, x * x, x * 3, x.sum(), x.dot(x)):
        each.to_floats()
    square.matmul(square.reshape(4, 2))
    square.times_integers(integers.reshape(4, 2))
    Elements.uniform(_COINS)
    Elements.decode(x.encode())
    x.rounded_shift(3).bits(5)
    x.square_root()
    project(x, _COINS, 8)
    project_words(integers.view(np.uint64), _COINS, 8)
    mix(x, _COINS, 8)
