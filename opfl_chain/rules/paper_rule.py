"""The paper's rule: the largest profile of honest steps, times a safety factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opfl_chain.circuits.boolean import BooleanCircuit, Shared
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.ring import Reals, UnsignedWords, unsigned_words
from opfl_chain.rules.evidence import Evidence, Forms, Observation, Profile, QuantilePanel
from opfl_chain.rules.paper import (
    PaperBoundary,
    check_replay,
    magnitudes,
    quanta_above,
    real_profile,
)
from opfl_chain.rules.paper_circuit import paper_faults
from opfl_chain.rules.quantiles import bounds_by_rank, quantiles, ranks_of
from opfl_chain.rules.rule import NothingToCalibrate, Rule

_LARGEST = np.uint64(np.iinfo(np.uint64).max)
_SMALLEST_BOUND = 1e-12
"""Relative bounds below it are drawn as zero: they are those of the largest factors."""
_SMALLEST_SHARE = 1e-9
"""The smallest relative discrepancy that is drawn above zero."""


@dataclass(frozen=True, eq=False)
class PaperProfile(Profile):
    """The profile of an observation by the paper's rule."""

    absolute: UnsignedWords
    """The discrepancy at each quantile, in quanta."""
    factors: UnsignedWords
    """The largest factor of the relative test that is passed at each quantile."""
    largest: int

    @classmethod
    def of(cls, observation: Observation, epsilon: float) -> PaperProfile:
        policy = observation.policy
        quanta = quanta_above("epsilon", epsilon, policy.fixed_point.words_per_unit)
        g = unsigned_words("gradient", observation.gradient)
        m = unsigned_words("replay", observation.replay.words)
        distance = magnitudes(g - m)
        allowance = magnitudes(g + m) + np.uint64(2 * quanta)
        # c * D <= A is c <= A // D; every factor passes where D is 0.
        passed = np.where(distance, allowance // np.maximum(distance, np.uint64(1)), _LARGEST)
        grid = policy.quantile_grid
        return cls(
            not g.any(),
            observation.replay.wrong_side,
            quantiles(distance, grid),
            _LARGEST - quantiles(_LARGEST - passed, grid),
            int(distance.max()),
        )

    def causes(self, boundary: PaperBoundary) -> list[str]:
        parts = {
            "absolute": bool((self.absolute > np.array(boundary.absolute, np.uint64)).any()),
            "relative": bool((self.factors < np.array(boundary.relative, np.uint64)).any()),
            "infinity": self.largest > boundary.infinity,
        }
        return [cause for cause, failed in parts.items() if failed]


@dataclass(frozen=True)
class PaperRule(Rule[PaperBoundary]):
    """The rule of the paper, over plain replays."""

    epsilon: float = 1e-6
    """The summand of the relative test, in units of the gradient: ours, the paper gives none."""

    boundary = PaperBoundary
    alpha = 3.0  # the paper's safety factor for LeNet
    for_comparison = True

    @property
    def constants(self) -> Mapping[str, float]:
        return {"epsilon": self.epsilon}

    def calibrate(
        self, policy: Policy, observations: Sequence[Observation], alpha: float
    ) -> PaperBoundary:
        if not observations:
            raise NothingToCalibrate
        decode, grid = policy.fixed_point.decode_words, policy.quantile_grid
        profiles = [
            real_profile(decode(each.gradient), decode(each.replay.words), grid, self.epsilon)
            for each in observations
        ]
        return PaperBoundary.of_bounds(
            policy,
            observations[0].gradient.size,
            alpha * np.max([profile.absolute for profile in profiles], axis=0),
            alpha * np.max([profile.relative for profile in profiles], axis=0),
            self.epsilon,
            alpha * max(profile.infinity for profile in profiles),
        )

    def causes(self, boundary: PaperBoundary, observation: Observation) -> list[str]:
        """Return one or more of `absolute`, `relative` and `infinity`, or nothing."""
        report = check_replay(boundary, observation.gradient, observation.replay.words)
        parts = {
            "absolute": not all(threshold.passed for threshold in report.absolute),
            "relative": not all(threshold.passed for threshold in report.relative),
            "infinity": report.beyond > 0,
        }
        return [cause for cause, failed in parts.items() if failed]

    def faults(
        self, circuit: BooleanCircuit, boundary: PaperBoundary, evidence: Evidence, forms: Forms
    ) -> Shared:
        return paper_faults(circuit, boundary, evidence, forms)

    def profile(self, observation: Observation) -> PaperProfile:
        return PaperProfile.of(observation, self.epsilon)

    def merged(self, boundaries: Sequence[PaperBoundary]) -> PaperBoundary:
        if not boundaries:
            raise NothingToCalibrate
        return boundaries[0].model_copy(
            update={
                "absolute": tuple(np.max([b.absolute for b in boundaries], axis=0).tolist()),
                # A smaller factor is less strict.
                "relative": tuple(np.min([b.relative for b in boundaries], axis=0).tolist()),
                "infinity": max(b.infinity for b in boundaries),
            }
        )

    def panels(
        self, boundary: PaperBoundary, policy: Policy, profiles: Sequence[PaperProfile]
    ) -> Sequence[QuantilePanel]:
        quantum = policy.fixed_point.quantum
        return (
            QuantilePanel(
                "Absolute discrepancy",
                np.array([each.absolute for each in profiles], np.float64) * quantum,
                np.array(boundary.absolute, np.float64) * quantum,
                boundary.infinity * quantum,
                quantum,
            ),
            QuantilePanel(
                "Relative discrepancy",
                _relative(np.array([each.factors for each in profiles], np.float64)),
                _relative(np.array(boundary.relative, np.float64)),
                None,
                _SMALLEST_SHARE,
            ),
        )

    def allowed_moves(
        self,
        boundary: PaperBoundary,
        policy: Policy,
        gradient: NDArray[np.float32],
        wanted: Reals,
        headroom: int | None,
        part: float = 1.0,
    ) -> Reals:
        del headroom
        size: Reals = np.abs(gradient.astype(np.float64)) * float(policy.fixed_point.words_per_unit)
        grid, ranks = boundary.grid, ranks_of(wanted)
        absolute = bounds_by_rank(grid, (*boundary.absolute, boundary.infinity), ranks)
        factors = bounds_by_rank(grid, (*boundary.relative, 0), ranks, np.maximum)
        relative = (2 * size + 2 * boundary.epsilon) / (factors + 1)
        words = part * np.minimum(absolute, np.where(factors > 0, relative, np.inf))
        return np.asarray(words * policy.fixed_point.quantum)

    def largest_distance(
        self, boundary: PaperBoundary, policy: Policy, replay: Reals, headroom: int | None
    ) -> float:
        """Assign the widest bounds to the largest coordinates, which gives the largest sum."""
        del headroom
        ranks = ranks_of(np.abs(replay) * float(policy.fixed_point.words_per_unit))
        words = bounds_by_rank(boundary.grid, (*boundary.absolute, boundary.infinity), ranks)
        return float(np.linalg.norm(words)) * policy.fixed_point.quantum


def _relative(factors: Reals) -> Reals:
    """Convert factors of the relative test to bounds, 0 for the largest factors."""
    bounds = 2 / (factors + 1)
    return np.where(bounds < _SMALLEST_BOUND, 0.0, bounds)
