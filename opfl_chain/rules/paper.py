"""The paper's boundary: quantiles of absolute and relative discrepancies, in whole quanta.

A quantum is one ring word of a gradient, 2^-f / S. The relative test D / (max(|G|, |M|) + eps) <= B
is multiplied out, because max(|G|, |M|) = (|G + M| + |G - M|) / 2: with c = 2 / B - 1 it says
c * D <= |G + M| + 2 * eps, which is exact in integers and needs no division inside MPC.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from opfl_chain.protocol.documents import MAX_JSON_INTEGER, Natural
from opfl_chain.protocol.errors import DocumentError, ProfileError
from opfl_chain.protocol.policy import Grid, Policy, increasing
from opfl_chain.protocol.ring import Reals, UnsignedWords, unsigned_words
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.quantiles import need, quantiles

FACTOR_BITS: Final = 4
"""Significant bits of a relative factor: inside MPC it is then a sum of at most four shifts."""

PRODUCT_LIMIT: Final = 1 << 62
"""The limit of a factor times a discrepancy that passes the guard: inside the ring."""

Quanta: TypeAlias = Annotated[tuple[Natural, ...], Field(strict=False)]


def round_factor_down(factor: int) -> int:
    """Return the largest factor <= ``factor`` with at most ``FACTOR_BITS`` significant bits."""
    shift = max(factor.bit_length() - FACTOR_BITS, 0)
    return factor >> shift << shift


class PaperBoundary(Boundary):
    """Bounds of the quantiles of absolute and relative discrepancies, and a guard."""

    rule: Literal["paper"] = "paper"
    grid: Grid
    """Quantiles in thousandths."""
    absolute: Quanta
    """The largest absolute discrepancy at each quantile."""
    relative: Quanta
    """The factor c at each quantile: larger is stricter, 0 allows everything."""
    epsilon: Natural
    infinity: Natural
    """The largest absolute discrepancy of any coordinate."""

    @model_validator(mode="after")
    def _consistent(self) -> "PaperBoundary":
        increasing(self.grid)
        for name, bounds in (("absolute", self.absolute), ("relative", self.relative)):
            if len(bounds) != len(self.grid):
                raise ValueError(
                    f"{name} has {len(bounds)} bounds for {len(self.grid)} quantiles of the grid"
                )
        for p, factor in zip(self.grid, self.relative, strict=True):
            if round_factor_down(factor) != factor:
                raise ValueError(
                    f"relative factor {factor} at p={p / 1000:g} has more than"
                    f" {FACTOR_BITS} significant bits"
                )
            if factor * self.infinity >= PRODUCT_LIMIT:
                raise ValueError(
                    f"relative factor {factor} at p={p / 1000:g} times infinity bound"
                    f" {self.infinity} must be below 2^62"
                )
        return self

    @classmethod
    def of_bounds(
        cls,
        policy: Policy,
        coordinates: int,
        absolute: Sequence[float],
        relative: Sequence[float],
        epsilon: float,
        infinity: float,
    ) -> "PaperBoundary":
        """Make a boundary from bounds in units of the gradient, rounded to the lenient side."""
        quanta = policy.fixed_point.words_per_unit
        guard = quanta_above("infinity", infinity, quanta)
        return cls.of_policy(
            policy,
            coordinates,
            grid=policy.quantile_grid,
            absolute=[quanta_above("absolute", bound, quanta) for bound in absolute],
            relative=[relative_factor(bound, guard) for bound in relative],
            epsilon=quanta_above("epsilon", epsilon, quanta),
            infinity=guard,
        )


def quanta_above(name: str, bound: float, quanta_per_unit: int) -> int:
    """Return the smallest whole number of quanta that is not below ``bound``."""
    return math.ceil(_finite(name, bound) * quanta_per_unit)


def relative_factor(bound: float, infinity: int) -> int:
    """Return the largest factor that is not stricter than ``bound`` and stays inside the ring."""
    largest = min(MAX_JSON_INTEGER, (PRODUCT_LIMIT - 1) // max(infinity, 1))
    exact = _finite("relative", bound)
    factor = largest if exact == 0 else min(largest, math.floor(2 / exact - 1))
    return round_factor_down(max(factor, 0))


def _finite(name: str, bound: float) -> Fraction:
    if not (math.isfinite(bound) and bound >= 0):
        raise DocumentError(f"{name} bound is {bound}, it must be finite and not negative")
    return Fraction(bound)


@dataclass(frozen=True)
class Threshold:
    """One bound of the profile, and the number of coordinates within it."""

    kind: Literal["absolute", "relative"]
    p: int
    """The quantile in thousandths."""
    bound: int
    """Quanta, or the factor of the relative test."""
    count: int
    needed: int

    @property
    def margin(self) -> int:
        """The number of further coordinates that may leave the bound; negative if it failed."""
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
    """The comparison of a replay with a boundary. Only :attr:`passed` may leave MPC."""

    absolute: tuple[Threshold, ...]
    relative: tuple[Threshold, ...]
    infinity: int
    """The bound of the guard, in quanta."""
    beyond: int
    """The number of coordinates beyond it."""
    largest: int
    """The largest discrepancy, in quanta."""

    @property
    def passed(self) -> bool:
        """The verdict."""
        return next(self.failures(), None) is None

    def failures(self) -> Iterator[str]:
        """Yield the failed checks: the guard, then the absolute and the relative thresholds."""
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
    """Return |w| of words read as two's complement; -2^63 yields 2^63."""
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
