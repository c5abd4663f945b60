"""The guided rule: the largest excess and the largest deviation from advice of honest steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opfl_chain.circuits.boolean import BooleanCircuit, Shared
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.ring import Reals, UnsignedWords
from opfl_chain.rules.evidence import (
    Evidence,
    Forms,
    Observation,
    Profile,
    QuantilePanel,
    RunSeries,
)
from opfl_chain.rules.guided import (
    GUIDED_GRID,
    Excess,
    GuidedBoundary,
    Measure,
    check_guided_replay,
    excess_of,
)
from opfl_chain.rules.guided_circuit import guided_faults
from opfl_chain.rules.quantiles import bounds_by_rank, quantiles, ranks_of
from opfl_chain.rules.rule import NothingToCalibrate, Rule

LEAST_UNITS = 16
"""Lower limit of bounds before the safety factor: the rounding of a few operations."""
LEAST_MASK_TOLERANCE = 64
"""1.5e-5, in quanta. A cheat may choose the masks of values this close to zero."""
LEAST_CEILING_TOLERANCE = 256
"""Quanta. Subtracting a constant from all logits changes nothing, so this may be wide."""

MEASURE = Measure()


@dataclass(frozen=True, eq=False)
class GuidedProfile(Profile):
    """The profile of an observation by the guided rule."""

    units: UnsignedWords
    """The excess at each quantile."""
    largest: int
    over_ceiling: int

    @classmethod
    def of(cls, observation: Observation) -> GuidedProfile:
        units, replay = observed_excess(observation).units, observation.replay
        return cls(
            not observation.gradient.any(),
            replay.wrong_side,
            quantiles(units, observation.policy.quantile_grid),
            int(units.max()),
            replay.over_ceiling,
        )

    def causes(self, boundary: GuidedBoundary) -> list[str]:
        parts = {
            "quantile": bool((self.units > np.array(boundary.bounds, np.uint64)).any()),
            "infinity": self.largest > boundary.infinity,
            "advice": self.wrong_side > boundary.mask_tolerance
            or self.over_ceiling > boundary.ceiling_tolerance,
        }
        return [cause for cause, failed in parts.items() if failed]


@dataclass(frozen=True)
class GuidedRule(Rule[GuidedBoundary]):
    """The rule of guided replays."""

    boundary = GuidedBoundary
    replay = "guided"
    alpha = 8.0
    grid = GUIDED_GRID
    trade_off = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)

    def calibrate(
        self, policy: Policy, observations: Sequence[Observation], alpha: float
    ) -> GuidedBoundary:
        if not observations:
            raise NothingToCalibrate
        profiles = [GuidedProfile.of(each) for each in observations]
        largest = np.max([each.units for each in profiles], axis=0)
        infinity = max(each.largest for each in profiles)
        activation_error = max(each.replay.activation_error for each in observations)
        over_ceiling = max(each.over_ceiling for each in profiles)
        return GuidedBoundary.of_policy(
            policy,
            observations[0].gradient.size,
            grid=policy.quantile_grid,
            allowance_shift=MEASURE.allowance_shift,
            scale_quantile=MEASURE.scale_quantile,
            resolution_bits=MEASURE.resolution_bits,
            bounds=[math.ceil(alpha * max(int(units), LEAST_UNITS)) for units in largest],
            infinity=math.ceil(alpha * max(infinity, LEAST_UNITS)),
            mask_tolerance=max(math.ceil(alpha * activation_error), LEAST_MASK_TOLERANCE),
            ceiling_tolerance=max(math.ceil(alpha * over_ceiling), LEAST_CEILING_TOLERANCE),
        )

    def causes(self, boundary: GuidedBoundary, observation: Observation) -> list[str]:
        """Return one or more of `quantile`, `infinity` and `advice`, or nothing."""
        replay = observation.replay
        report = check_guided_replay(boundary, observation.gradient, replay.words, replay.headroom)
        parts = {
            "quantile": report.short_quantiles > 0,
            "infinity": report.beyond > 0,
            "advice": replay.wrong_side > boundary.mask_tolerance
            or replay.over_ceiling > boundary.ceiling_tolerance,
        }
        return [cause for cause, failed in parts.items() if failed]

    def faults(
        self, circuit: BooleanCircuit, boundary: GuidedBoundary, evidence: Evidence, forms: Forms
    ) -> Shared:
        return guided_faults(circuit, boundary, evidence, forms)

    def profile(self, observation: Observation) -> GuidedProfile:
        return GuidedProfile.of(observation)

    def merged(self, boundaries: Sequence[GuidedBoundary]) -> GuidedBoundary:
        if not boundaries:
            raise NothingToCalibrate
        return boundaries[0].model_copy(
            update={
                "bounds": tuple(np.max([b.bounds for b in boundaries], axis=0).tolist()),
                "infinity": max(b.infinity for b in boundaries),
                "mask_tolerance": max(b.mask_tolerance for b in boundaries),
                "ceiling_tolerance": max(b.ceiling_tolerance for b in boundaries),
            }
        )

    def mask_tolerance(self, boundary: GuidedBoundary) -> int:
        return boundary.mask_tolerance

    def panels(
        self, boundary: GuidedBoundary, policy: Policy, profiles: Sequence[GuidedProfile]
    ) -> Sequence[QuantilePanel]:
        del policy
        return (
            QuantilePanel(
                "Excess over the allowance, in units of the step's scale",
                np.array([each.units for each in profiles], np.float64),
                np.array(boundary.bounds, np.float64),
                boundary.infinity,
                1,
            ),
        )

    def largest_of_steps(
        self, boundary: GuidedBoundary, profiles: Sequence[GuidedProfile]
    ) -> RunSeries:
        largest = [each.largest for each in profiles]
        return RunSeries("largest excess of each step", "units", largest, boundary.infinity)

    def allowed_moves(
        self,
        boundary: GuidedBoundary,
        policy: Policy,
        gradient: NDArray[np.float32],
        wanted: Reals,
        headroom: int | None,
        part: float = 1.0,
    ) -> Reals:
        size: Reals = np.abs(gradient.astype(np.float64)) * float(policy.fixed_point.words_per_unit)
        unit = _unit(boundary, size, headroom)
        bounds = bounds_by_rank(
            boundary.grid, (*boundary.bounds, boundary.infinity), ranks_of(wanted)
        )
        fraction = 2.0**-boundary.allowance_shift
        # Moved by D against its sign, a coordinate has |G + M| = 2 |G| - D.
        words = part * (2 * size * fraction + bounds * 2.0**unit) / (1 + fraction)
        return np.asarray(words * policy.fixed_point.quantum)

    def largest_distance(
        self, boundary: GuidedBoundary, policy: Policy, replay: Reals, headroom: int | None
    ) -> float:
        """Assign the widest bounds to the largest coordinates, which gives the largest sum."""
        size: Reals = np.abs(replay) * float(policy.fixed_point.words_per_unit)
        fraction = 2.0**-boundary.allowance_shift
        # An accepted gradient changes the scale by less than a factor of two.
        unit = _unit(boundary, size, headroom) + 1
        bounds = bounds_by_rank(
            boundary.grid, (*boundary.bounds, boundary.infinity), ranks_of(size)
        )
        words = (2 * size * fraction + (bounds + 1) * 2.0**unit) / (1 - fraction)
        return float(np.linalg.norm(words)) * policy.fixed_point.quantum


def observed_excess(observation: Observation) -> Excess:
    """Return the excess of an observation by the measure of new boundaries."""
    replay = observation.replay
    return excess_of(MEASURE, observation.gradient, replay.words, replay.headroom)


def _unit(boundary: GuidedBoundary, size: Reals, headroom: int | None) -> int:
    """Return the exponent of the unit of a step whose replay agrees with its gradient."""
    if headroom is None:
        return 0
    (typical,) = quantiles(2 * size, [boundary.scale_quantile])
    return max(int(typical).bit_length() - boundary.resolution_bits, headroom)
