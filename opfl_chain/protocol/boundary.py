"""The boundary: how far a replay may be from what a client committed to, in whole quanta.

A quantum is one ring word of a gradient, 2^-f / S. The relative test D / (max(|G|, |M|) + eps) <= B
is multiplied out, because max(|G|, |M|) = (|G + M| + |G - M|) / 2: with c = 2 / B - 1 it says
c * D <= |G + M| + 2 * eps, which is exact in integers and needs no division inside MPC.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, model_validator

from opfl_chain.protocol.documents import (
    MAX_JSON_INTEGER,
    Document,
    Name,
    Natural,
    Positive,
)
from opfl_chain.protocol.errors import DocumentError
from opfl_chain.protocol.policy import Grid, Policy, increasing

FACTOR_BITS: Final = 4
"""Significant bits of a relative factor: inside MPC it is then a sum of at most four shifts."""

PRODUCT_LIMIT: Final = 1 << 62
"""A factor times a discrepancy that passes the guard stays below it, and so inside the ring."""

Quanta: TypeAlias = Annotated[tuple[Natural, ...], Field(strict=False)]


def round_factor_down(factor: int) -> int:
    """Return the largest factor of at most ``FACTOR_BITS`` significant bits that is not above."""
    shift = max(factor.bit_length() - FACTOR_BITS, 0)
    return factor >> shift << shift


class PaperBoundary(Document):
    """The rule of the paper: quantiles of absolute and relative discrepancies, and a guard."""

    format: Literal["opfl.boundary.v1"] = "opfl.boundary.v1"
    rule: Literal["paper"] = "paper"
    policy_hash: Annotated[str, Field(pattern="^0x[0-9a-f]{64}$")]
    spu_version: Name
    coordinates: Positive
    grid: Grid
    """Quantiles in thousandths."""
    absolute: Quanta
    """The largest absolute discrepancy at each quantile."""
    relative: Quanta
    """The factor c at each quantile; a larger one is stricter and 0 allows everything."""
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
        """Make a boundary of bounds in units of the gradient, nowhere stricter than they are."""
        quanta = policy.fixed_point.words_per_unit
        guard = quanta_above("infinity", infinity, quanta)
        return cls.from_mapping(
            {
                "policy_hash": "0x" + policy.hash.hex(),
                "spu_version": policy.spu.version,
                "coordinates": coordinates,
                "grid": policy.quantile_grid,
                "absolute": [quanta_above("absolute", bound, quanta) for bound in absolute],
                "relative": [relative_factor(bound, guard) for bound in relative],
                "epsilon": quanta_above("epsilon", epsilon, quanta),
                "infinity": guard,
            }
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
