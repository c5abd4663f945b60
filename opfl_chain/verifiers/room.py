"""How far each coordinate may be moved within a boundary.

A quantile test bounds how many coordinates are beyond each bound, and not which. So the attacker
ranks them: those that it wants to move most get the widest bounds. If no coordinate is beyond its
own, all tests pass. The replay is taken to be the gradient itself; its rounding needs a part of the
room, which is why an attacker that must not fail leaves some.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from opfl_chain.protocol.advice import lift_of
from opfl_chain.protocol.boundary import PaperBoundary
from opfl_chain.protocol.guided import GuidedBoundary
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.quantiles import need, quantiles
from opfl_chain.protocol.rules import Boundary

Reals = NDArray[np.float64]
Ranks = NDArray[np.int64]


def headroom_of(
    policy: Policy, logits: NDArray[np.float32], labels: NDArray[np.int64]
) -> int | None:
    """How many lifts a step does not use, None if it has nothing to learn."""
    unused = policy.largest_lift - lift_of(logits.astype(np.float64), labels, policy.largest_lift)
    return unused if unused >= 0 else None


def room(
    boundary: Boundary,
    policy: Policy,
    gradient: NDArray[np.float32],
    wanted: Reals,
    headroom: int | None,
    part: float = 1.0,
) -> Reals:
    """In units of the gradient, and at most `part` of every bound; `wanted` ranks coordinates."""
    size: Reals = np.abs(gradient.astype(np.float64)) * float(policy.fixed_point.words_per_unit)
    ranks: Ranks = np.empty(size.size, np.int64)
    ranks[np.argsort(wanted, kind="stable")] = np.arange(1, size.size + 1)
    if isinstance(boundary, GuidedBoundary):
        words = _guided(boundary, size, ranks, headroom, part)
    else:
        words = _paper(boundary, size, ranks, part)
    return words * policy.fixed_point.quantum


def reach(boundary: Boundary, policy: Policy, replay: Reals, headroom: int | None) -> float:
    """No accepted gradient is farther than this from the replay, in L2 and units of the gradient.

    The widest bounds are taken to go to the largest coordinates, where they add up to most.
    """
    size: Reals = np.abs(replay) * float(policy.fixed_point.words_per_unit)
    ranks: Ranks = np.empty(size.size, np.int64)
    ranks[np.argsort(size, kind="stable")] = np.arange(1, size.size + 1)
    if isinstance(boundary, GuidedBoundary):
        fraction = 2.0**-boundary.allowance_shift
        # What is accepted moves the scale by less than a factor of two.
        unit = _unit(boundary, size, headroom) + 1
        bounds = _by_rank(boundary.grid, (*boundary.bounds, boundary.infinity), ranks, np.minimum)
        words = (2 * size * fraction + (bounds + 1) * 2.0**unit) / (1 - fraction)
    else:
        absolute = (*boundary.absolute, boundary.infinity)
        words = _by_rank(boundary.grid, absolute, ranks, np.minimum)
    return float(np.linalg.norm(words)) * policy.fixed_point.quantum


def _guided(
    boundary: GuidedBoundary, size: Reals, ranks: Ranks, headroom: int | None, part: float
) -> Reals:
    unit = _unit(boundary, size, headroom)
    bounds = _by_rank(boundary.grid, (*boundary.bounds, boundary.infinity), ranks, np.minimum)
    fraction = 2.0**-boundary.allowance_shift
    # Moved by D against its sign, a coordinate has |G + M| = 2 |G| - D.
    return part * (2 * size * fraction + bounds * 2.0**unit) / (1 + fraction)


def _unit(boundary: GuidedBoundary, size: Reals, headroom: int | None) -> int:
    if headroom is None:
        return 0
    (typical,) = quantiles(2 * size, [boundary.scale_quantile])
    return max(int(typical).bit_length() - boundary.resolution_bits, headroom)


def _paper(boundary: PaperBoundary, size: Reals, ranks: Ranks, part: float) -> Reals:
    grid = boundary.grid
    absolute = _by_rank(grid, (*boundary.absolute, boundary.infinity), ranks, np.minimum)
    factors = _by_rank(grid, (*boundary.relative, 0), ranks, np.maximum)
    relative = (2 * size + 2 * boundary.epsilon) / (factors + 1)
    return part * np.minimum(absolute, np.where(factors > 0, relative, np.inf))


def _by_rank(
    grid: Sequence[int], bounds: Sequence[int], ranks: Ranks, strictest: np.ufunc
) -> Reals:
    """What binds each coordinate: the strictest of the quantiles that its rank is within.

    The last of the bounds is beyond all quantiles, for every coordinate.
    """
    needs = np.array([need(p, ranks.size) for p in grid])
    binding = strictest.accumulate(np.array(bounds, np.float64)[::-1])[::-1]
    return np.asarray(binding[np.searchsorted(needs, ranks)])
