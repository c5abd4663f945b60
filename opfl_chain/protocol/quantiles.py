"""Quantiles that can be counted instead of sorted: the inverse of the distribution function."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opfl_chain.protocol.errors import ProfileError


def need(p: int, count: int) -> int:
    """Return how many of ``count`` values must be within the bound of quantile p / 1000."""
    return -(-p * count // 1000)


def quantiles(values: npt.NDArray[Any], grid: Sequence[int]) -> npt.NDArray[Any]:
    """Return the quantiles p / 1000 of ``values`` by the inverse of their distribution function.

    The quantile is the smallest of the values that at least p / 1000 of them do not exceed, so it
    is within a bound if and only if ``need(p, count)`` of the values are.
    """
    if values.ndim != 1 or not values.size:
        raise ProfileError(f"quantiles are of a flat array, got one of shape {values.shape}")
    if not all(1 <= p <= 1000 for p in grid):
        raise ProfileError(f"quantiles are in thousandths from 1 to 1000, got {list(grid)}")
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ProfileError(f"value {int(np.isnan(values).argmax())} is nan and has no rank")
    ranks = [need(p, values.size) - 1 for p in grid]
    return np.partition(values, sorted(set(ranks)))[ranks]
