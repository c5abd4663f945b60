"""A replay reduced to what its verdict depends on, for any boundary of the rule.

A replay is within the bound of a quantile if the quantile of its discrepancies is. So a few dozen
numbers of each step decide under every boundary, and runs of gigabytes are read once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from opfl_chain.calibration.boundaries import PAPER_EPSILON, Observation
from opfl_chain.protocol.boundary import PaperBoundary, quanta_above
from opfl_chain.protocol.guided import GuidedBoundary
from opfl_chain.protocol.policy import GuidedReplay
from opfl_chain.protocol.profile import magnitudes
from opfl_chain.protocol.quantiles import quantiles
from opfl_chain.protocol.ring import UnsignedWords, unsigned_words
from opfl_chain.protocol.rules import Boundary

_LARGEST = np.uint64(np.iinfo(np.uint64).max)


@dataclass(frozen=True, eq=False)
class GuidedProfile:
    """Of a guided replay."""

    units: UnsignedWords
    """The excess at each quantile."""
    largest: int
    wrong_side: int
    over_ceiling: int
    zero: bool
    """Whether the client commits to zero, because there is nothing to learn."""

    @classmethod
    def of(cls, observation: Observation) -> GuidedProfile:
        units, replayed = observation.excess.units, observation.replayed
        return cls(
            quantiles(units, observation.policy.quantile_grid),
            int(units.max()),
            replayed.wrong_side,
            replayed.over_ceiling,
            not observation.gradient.any(),
        )

    def causes(self, boundary: Boundary) -> list[str]:
        """As `causes_of_rejection`."""
        assert isinstance(boundary, GuidedBoundary)
        parts = {
            "quantile": bool((self.units > np.array(boundary.bounds, np.uint64)).any()),
            "infinity": self.largest > boundary.infinity,
            "advice": self.wrong_side > boundary.mask_tolerance
            or self.over_ceiling > boundary.ceiling_tolerance,
        }
        return [cause for cause, failed in parts.items() if failed]


@dataclass(frozen=True, eq=False)
class PaperProfile:
    """Of a plain replay, by the paper's rule."""

    absolute: UnsignedWords
    """The discrepancy at each quantile, in quanta."""
    factors: UnsignedWords
    """The largest factor of the relative test that is passed at each quantile."""
    largest: int
    zero: bool

    @classmethod
    def of(cls, observation: Observation) -> PaperProfile:
        policy = observation.policy
        epsilon = quanta_above("epsilon", PAPER_EPSILON, policy.fixed_point.words_per_unit)
        g = unsigned_words("gradient", observation.gradient)
        m = unsigned_words("replay", observation.replay)
        distance = magnitudes(g - m)
        allowance = magnitudes(g + m) + np.uint64(2 * epsilon)
        # c * D <= A is c <= A // D; all factors pass where nothing differs.
        passed = np.where(distance, allowance // np.maximum(distance, np.uint64(1)), _LARGEST)
        grid = policy.quantile_grid
        return cls(
            quantiles(distance, grid),
            _LARGEST - quantiles(_LARGEST - passed, grid),
            int(distance.max()),
            not g.any(),
        )

    def causes(self, boundary: Boundary) -> list[str]:
        """As `causes_of_rejection`."""
        assert isinstance(boundary, PaperBoundary)
        parts = {
            "absolute": bool((self.absolute > np.array(boundary.absolute, np.uint64)).any()),
            "relative": bool((self.factors < np.array(boundary.relative, np.uint64)).any()),
            "infinity": self.largest > boundary.infinity,
        }
        return [cause for cause, failed in parts.items() if failed]


Profile: TypeAlias = GuidedProfile | PaperProfile


def profile_of(observation: Observation) -> Profile:
    guided = isinstance(observation.policy.replay, GuidedReplay)
    return GuidedProfile.of(observation) if guided else PaperProfile.of(observation)
