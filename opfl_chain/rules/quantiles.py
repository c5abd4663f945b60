"""Quantiles by counting instead of sorting: the inverse of the distribution function."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opfl_chain.protocol.errors import ProfileError
from opfl_chain.protocol.ring import Reals

Ranks: TypeAlias = npt.NDArray[np.int64]


def need(p: int, count: int) -> int:
    """Return the number of ``count`` values that must be within the bound of quantile p / 1000."""
    return -(-p * count // 1000)


def quantiles(values: npt.NDArray[Any], grid: Sequence[int]) -> npt.NDArray[Any]:
    """Return the quantiles p / 1000 of ``values`` by the inverse of their distribution function.

    The quantile is the smallest of the values that at least p / 1000 of them do not exceed, so it
    is within a bound if and only if ``need(p, count)`` of the values are.
    """
    if values.ndim != 1 or not values.size:
        raise ProfileError(f"quantiles need a flat array, got shape {values.shape}")
    if not all(1 <= p <= 1000 for p in grid):
        raise ProfileError(f"quantiles must be in thousandths from 1 to 1000, got {list(grid)}")
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ProfileError(f"value {int(np.isnan(values).argmax())} is nan and has no rank")
    ranks = [need(p, values.size) - 1 for p in grid]
    return np.partition(values, sorted(set(ranks)))[ranks]


def ranks_of(weights: Reals) -> Ranks:
    """Return the rank of each coordinate by its weight, from 1 to their number."""
    ranks: Ranks = np.empty(weights.size, np.int64)
    ranks[np.argsort(weights, kind="stable")] = np.arange(1, weights.size + 1)
    return ranks


def bounds_by_rank(
    grid: Sequence[int], bounds: Sequence[int], ranks: Ranks, strictest: np.ufunc = np.minimum
) -> Reals:
    """Return the binding bound of each coordinate: the strictest quantile that covers its rank.

    If no coordinate exceeds its own, all quantile tests pass. The last of the bounds applies to
    every coordinate.
    """
    needs = np.array([need(p, ranks.size) for p in grid])
    binding = strictest.accumulate(np.array(bounds, np.float64)[::-1])[::-1]
    return np.asarray(binding[np.searchsorted(needs, ranks)])
