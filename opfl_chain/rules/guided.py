"""The guided boundary: the allowed distance of a guided replay from a committed gradient.

Rounding in a replay shows in two ways. An error in the logits scales all of the gradient, so every
coordinate may be off by a small fraction of itself: the allowance. The rest does not depend on the
coordinate, but on the size of the whole gradient. The excess over the allowance is therefore
measured in units of the step's own scale, a power of two taken from a high quantile of the gradient
itself. So one boundary serves early and late steps alike.

The scale never falls below the rounding of the replay, which a lift makes finer. The rule is exact
in integers; inside MPC it takes shifts, one subtraction and comparisons with public numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from opfl_chain.protocol.documents import Natural
from opfl_chain.protocol.errors import ProfileError
from opfl_chain.protocol.policy import PAPER_GRID, Grid, increasing
from opfl_chain.protocol.ring import UnsignedWords, Words, unsigned_words
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.quantiles import need, quantiles

GUIDED_GRID: Final = (*PAPER_GRID, 990, 999)
"""The paper's quantiles, and two of the tail."""

_SIGN: Final = np.uint64(63)

Units = Annotated[tuple[Annotated[int, Field(ge=0, lt=1 << 32)], ...], Field(strict=False)]


@dataclass(frozen=True)
class Measure:
    """The measure of excess, which a boundary fixes before its bounds are known."""

    allowance_shift: int = 13
    scale_quantile: int = 999
    resolution_bits: int = 26


class GuidedBoundary(Boundary):
    """Bounds in units of a step's scale, and tolerances of the client's advice."""

    rule: Literal["guided"] = "guided"
    grid: Grid
    """Quantiles in thousandths."""
    allowance_shift: Annotated[int, Field(ge=1, le=62)]
    """A coordinate may be off by |G + M| / 2^shift, whatever the scale."""
    scale_quantile: Annotated[int, Field(ge=1, le=1000)]
    """The quantile of |G + M|, in thousandths, that gives the size of a step's gradient."""
    resolution_bits: Annotated[int, Field(ge=0, le=62)]
    """A unit is 2^-bits of the scale."""
    bounds: Units
    """The largest excess at each quantile, in units."""
    infinity: Annotated[int, Field(ge=0, lt=1 << 32)]
    """The largest excess of any coordinate, in units."""
    mask_tolerance: Natural
    """The allowed distance of a value on the wrong side of its ReLU, in quanta of the replay."""
    ceiling_tolerance: Natural
    """The allowed distance of a logit above its ceiling, in quanta of the replay."""

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
    """The excess over the allowance, in units of the step's scale."""

    unit: int
    """The size of a unit in quanta, as a power of two."""
    units: UnsignedWords


@dataclass(frozen=True)
class GuidedReport:
    """The comparison of a guided replay with a boundary. Only :attr:`passed` may leave MPC."""

    boundary: GuidedBoundary
    unit: int
    counts: tuple[int, ...]
    """The number of coordinates within each bound."""
    beyond: int
    """The number of coordinates beyond the guard."""
    largest: int
    """The largest excess, in units."""

    @property
    def passed(self) -> bool:
        """The verdict."""
        return next(self.failures(), None) is None

    @property
    def short_quantiles(self) -> int:
        """The number of quantiles with too few coordinates within their bound."""
        return len(list(self._short()))

    def failures(self) -> Iterator[str]:
        """Yield the failed checks: the guard, then the quantiles."""
        if self.beyond:
            yield (
                f"infinity: {self.beyond:,} coordinates beyond {self.boundary.infinity:,} units,"
                f" the farthest at {self.largest:,}"
            )
        yield from self._short()

    def _short(self) -> Iterator[str]:
        for p, bound, count in zip(
            self.boundary.grid, self.boundary.bounds, self.counts, strict=True
        ):
            needed = need(p, self.boundary.coordinates)
            if count < needed:
                yield f"p={p / 1000:g}: {count:,} of {needed:,} coordinates within {bound:,} units"


def size_of(words: UnsignedWords) -> UnsignedWords:
    """Return |w|, or |w| - 1 where w is negative: the result of inverting all bits."""
    return np.where(words >> _SIGN, ~words, words)


def excess_of(
    rule: GuidedBoundary | Measure,
    gradient: npt.NDArray[Any],
    replay: Words,
    headroom: int | None,
) -> Excess:
    """Return the difference of a replay beyond the allowance.

    Both are words of the committed scale; ``headroom`` is the number of lifts the step did not use.
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
