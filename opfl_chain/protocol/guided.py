"""Our own rule: how far a guided replay may be from what a client committed to.

Rounding in a replay shows in two ways. An error in the logits scales all of the gradient, so every
coordinate may be off by a small fraction of itself: the allowance. The rest does not depend on the
coordinate, but on how large the gradient as a whole is. What exceeds the allowance is therefore
measured in units of the step's own scale, a power of two taken from a high quantile of the gradient
itself. So one boundary serves early and late steps alike.

The scale never gets below the rounding of the replay, which a lift makes finer. All of it is exact
in integers, and inside MPC made of shifts, one subtraction and comparisons with public numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from opfl_chain.protocol.documents import Document, Name, Natural, Positive
from opfl_chain.protocol.errors import ProfileError
from opfl_chain.protocol.policy import PAPER_GRID, Grid, increasing
from opfl_chain.protocol.quantiles import need, quantiles
from opfl_chain.protocol.ring import UnsignedWords, Words, unsigned_words

GUIDED_GRID: Final = (*PAPER_GRID, 990, 999)
"""The paper's quantiles, and two of the tail."""

_SIGN: Final = np.uint64(63)

Units = Annotated[tuple[Annotated[int, Field(ge=0, lt=1 << 32)], ...], Field(strict=False)]


@dataclass(frozen=True)
class Measure:
    """How excess is measured: what a boundary fixes before its bounds are known."""

    allowance_shift: int = 13
    scale_quantile: int = 999
    resolution_bits: int = 26


class GuidedBoundary(Document):
    """Bounds in units of a step's scale, and tolerances of the client's advice."""

    format: Literal["opfl.boundary.v1"] = "opfl.boundary.v1"
    rule: Literal["guided"] = "guided"
    policy_hash: Annotated[str, Field(pattern="^0x[0-9a-f]{64}$")]
    spu_version: Name
    coordinates: Positive
    grid: Grid
    """Quantiles in thousandths."""
    allowance_shift: Annotated[int, Field(ge=1, le=62)]
    """A coordinate may be off by |G + M| / 2^shift, whatever the scale."""
    scale_quantile: Annotated[int, Field(ge=1, le=1000)]
    """Of |G + M|, in thousandths: how large the gradient of a step is."""
    resolution_bits: Annotated[int, Field(ge=0, le=62)]
    """A unit is 2^-bits of the scale."""
    bounds: Units
    """The largest excess at each quantile, in units."""
    infinity: Annotated[int, Field(ge=0, lt=1 << 32)]
    """The largest excess of any coordinate, in units."""
    mask_tolerance: Natural
    """How far a value may be on the other side of its ReLU, in quanta of the replay."""
    ceiling_tolerance: Natural
    """How far a logit may be above its ceiling, in quanta of the replay."""

    @model_validator(mode="after")
    def _consistent(self) -> "GuidedBoundary":
        increasing(self.grid)
        if len(self.bounds) != len(self.grid):
            raise ValueError(
                f"there are {len(self.bounds)} bounds for {len(self.grid)} quantiles of the grid"
            )
        return self


@dataclass(frozen=True, eq=False)
class Excess:
    """What exceeds the allowance, in units of the step's scale."""

    unit: int
    """The power of two, in quanta, that a unit is."""
    units: UnsignedWords


@dataclass(frozen=True)
class GuidedReport:
    """How a guided replay compares with a boundary. Only :attr:`passed` may leave MPC."""

    boundary: GuidedBoundary
    unit: int
    counts: tuple[int, ...]
    """How many coordinates are within each bound."""
    beyond: int
    """How many are beyond the guard."""
    largest: int
    """The largest excess, in units."""

    @property
    def passed(self) -> bool:
        """The verdict."""
        return next(self.failures(), None) is None

    def failures(self) -> Iterator[str]:
        """What failed: the guard, then the quantiles."""
        if self.beyond:
            yield (
                f"infinity: {self.beyond:,} coordinates beyond {self.boundary.infinity:,} units,"
                f" the farthest at {self.largest:,}"
            )
        for p, bound, count in zip(
            self.boundary.grid, self.boundary.bounds, self.counts, strict=True
        ):
            needed = need(p, self.boundary.coordinates)
            if count < needed:
                yield f"p={p / 1000:g}: {count:,} of {needed:,} coordinates within {bound:,} units"


def size_of(words: UnsignedWords) -> UnsignedWords:
    """Return |w|, or one less where w is negative: what inverting all bits gives."""
    return np.where(words >> _SIGN, ~words, words)


def excess_of(
    rule: GuidedBoundary | Measure,
    gradient: npt.NDArray[Any],
    replay: Words,
    headroom: int | None,
) -> Excess:
    """Return what a replay differs by beyond the allowance.

    Both are words of the committed scale; ``headroom`` says how many lifts the step did not use.
    It is None if there was nothing to learn: a unit is then one word.
    """
    g, m = unsigned_words("gradient", gradient), unsigned_words("replay", replay)
    if g.shape != m.shape:
        raise ProfileError(f"gradient has {g.size:,} coordinates, its replay {m.size:,}")
    distance, total = size_of(g - m), size_of(g + m)
    allowance = total >> np.uint64(rule.allowance_shift)
    excess = np.where(distance > allowance, distance - allowance, np.uint64(0))
    unit = 0
    if headroom is not None:
        (typical,) = quantiles(total, [rule.scale_quantile])
        unit = max(int(typical).bit_length() - rule.resolution_bits, headroom)
    return Excess(unit, excess >> np.uint64(unit))


def check_guided_replay(
    boundary: GuidedBoundary, gradient: npt.NDArray[Any], replay: Words, headroom: int | None
) -> GuidedReport:
    """Compare the committed gradient with its replay, both as ring words."""
    excess = excess_of(boundary, gradient, replay, headroom)
    if excess.units.size != boundary.coordinates:
        raise ProfileError(
            f"gradient has {excess.units.size:,} coordinates, the boundary is for"
            f" {boundary.coordinates:,}"
        )
    counts = (int(np.count_nonzero(excess.units <= np.uint64(b))) for b in boundary.bounds)
    return GuidedReport(
        boundary,
        excess.unit,
        tuple(counts),
        int(np.count_nonzero(excess.units > np.uint64(boundary.infinity))),
        int(excess.units.max()),
    )
