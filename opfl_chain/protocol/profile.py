"""The discrepancy profile of a replay and its verdict: the reference for what MPC computes.

The integer test decides. The real-valued profile is the paper's formulas in float64, from which a
boundary is calibrated; both use the same quantiles.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from opfl_chain.protocol.boundary import PaperBoundary
from opfl_chain.protocol.errors import ProfileError
from opfl_chain.protocol.fixed_point import Reals
from opfl_chain.protocol.quantiles import need, quantiles
from opfl_chain.protocol.ring import UnsignedWords, unsigned_words


@dataclass(frozen=True)
class Threshold:
    """One bound of the profile, and how many coordinates are within it."""

    kind: Literal["absolute", "relative"]
    p: int
    """The quantile in thousandths."""
    bound: int
    """Quanta, or the factor of the relative test."""
    count: int
    needed: int

    @property
    def margin(self) -> int:
        """How many coordinates could still leave the bound; negative if it failed."""
        return self.count - self.needed

    @property
    def passed(self) -> bool:
        return self.margin >= 0

    def __str__(self) -> str:
        counted = f"{self.kind} p={self.p / 1000:g}: {self.count:,} of {self.needed:,} coordinates"
        if self.kind == "absolute":
            return f"{counted} within {self.bound:,} quanta"
        return f"{counted} within {2 / (self.bound + 1):.3g} of their size"


@dataclass(frozen=True)
class ProfileReport:
    """How a replay compares with a boundary. Only :attr:`passed` may leave MPC."""

    absolute: tuple[Threshold, ...]
    relative: tuple[Threshold, ...]
    infinity: int
    """The bound of the guard, in quanta."""
    beyond: int
    """How many coordinates are beyond it."""
    largest: int
    """The largest discrepancy, in quanta."""

    @property
    def passed(self) -> bool:
        """The verdict."""
        return next(self.failures(), None) is None

    def failures(self) -> Iterator[str]:
        """What failed: the guard, then the absolute and the relative thresholds."""
        if self.beyond:
            yield (
                f"infinity: {self.beyond:,} coordinates beyond {self.infinity:,} quanta,"
                f" the farthest at {self.largest:,}"
            )
        yield from (str(t) for t in (*self.absolute, *self.relative) if not t.passed)

    def __str__(self) -> str:
        if failure := next(self.failures(), None):
            return f"outside the boundary: {failure}"
        margin = min((t.margin for t in (*self.absolute, *self.relative)), default=0)
        return (
            f"inside the boundary: {margin:,} coordinates to spare at the closest threshold,"
            f" the largest discrepancy is {self.largest:,} of {self.infinity:,} quanta"
        )


@dataclass(frozen=True, eq=False)
class RealProfile:
    """The paper's profile of one step, in units of the gradient."""

    absolute: Reals
    relative: Reals
    infinity: float


def magnitudes(words: UnsignedWords) -> UnsignedWords:
    """Return |w| of words read as two's complement; that of -2^63 is 2^63."""
    return np.where(words >> np.uint64(63), np.uint64(0) - words, words)


def check_replay(
    boundary: PaperBoundary, gradient: npt.NDArray[Any], replay: npt.NDArray[Any]
) -> ProfileReport:
    """Compare the committed gradient with its replay, both as ring words."""
    g, m = unsigned_words("gradient", gradient), unsigned_words("replay", replay)
    for name, words in (("gradient", g), ("replay", m)):
        if words.size != boundary.coordinates:
            raise ProfileError(
                f"{name} has {words.size:,} coordinates, the boundary is for"
                f" {boundary.coordinates:,}"
            )
    distance = magnitudes(g - m)
    allowance = magnitudes(g + m) + np.uint64(2 * boundary.epsilon)  # at most 2^63 + 2^54
    absolute = [int(np.count_nonzero(distance <= np.uint64(b))) for b in boundary.absolute]
    relative = [_within_factor(distance, allowance, factor) for factor in boundary.relative]
    return ProfileReport(
        absolute=_thresholds("absolute", boundary, boundary.absolute, absolute),
        relative=_thresholds("relative", boundary, boundary.relative, relative),
        infinity=boundary.infinity,
        beyond=int(np.count_nonzero(distance > np.uint64(boundary.infinity))),
        largest=int(distance.max()),
    )


def real_profile(
    gradient: Reals, replay: Reals, grid: Sequence[int], epsilon: float
) -> RealProfile:
    """Return the paper's profile of two gradients, as float64 in units of the gradient."""
    if gradient.shape != replay.shape:
        raise ProfileError(f"gradient has shape {gradient.shape}, its replay {replay.shape}")
    if not epsilon > 0:
        raise ProfileError(f"epsilon is {epsilon}, it must be above zero")
    distance = np.abs(gradient - replay)
    size = np.maximum(np.abs(gradient), np.abs(replay))
    return RealProfile(
        absolute=quantiles(distance, grid),
        relative=quantiles(distance / (size + epsilon), grid),
        infinity=float(distance.max()),
    )


def _within_factor(distance: UnsignedWords, allowance: UnsignedWords, factor: int) -> int:
    # factor * distance may leave 64 bits where the guard fails; the quotient never does
    if factor == 0:
        return distance.size
    return int(np.count_nonzero(distance <= allowance // np.uint64(factor)))


def _thresholds(
    kind: Literal["absolute", "relative"],
    boundary: PaperBoundary,
    bounds: Sequence[int],
    counts: Sequence[int],
) -> tuple[Threshold, ...]:
    return tuple(
        Threshold(kind, p, bound, count, need(p, boundary.coordinates))
        for p, bound, count in zip(boundary.grid, bounds, counts, strict=True)
    )
