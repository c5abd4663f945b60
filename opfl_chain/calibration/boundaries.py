"""From honest replays to a boundary, by either rule, and back: which replays are inside of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from opfl_chain.calibration.errors import NothingToCalibrate
from opfl_chain.calibration.replayer import Replayed
from opfl_chain.protocol.boundary import PaperBoundary
from opfl_chain.protocol.guided import (
    Excess,
    GuidedBoundary,
    Measure,
    check_guided_replay,
    excess_of,
)
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.profile import check_replay, real_profile
from opfl_chain.protocol.quantiles import quantiles
from opfl_chain.protocol.rules import Boundary

PAPER_ALPHA = 3.0
PAPER_EPSILON = 1e-6
"""The safety factor is the paper's for LeNet; it gives no epsilon."""

GUIDED_ALPHA = 8.0
LEAST_UNITS = 16
"""No bound gets below it, before the safety factor: it is the rounding of a few operations."""
LEAST_MASK_TOLERANCE = 64
"""In quanta: 1.5e-5. A cheat may choose the masks of values that are so close to zero."""
LEAST_CEILING_TOLERANCE = 256
"""In quanta. What is subtracted from all logits changes nothing, so this one may be wide."""

MEASURE = Measure()


@dataclass(frozen=True, eq=False)
class Observation:
    """A committed gradient and its replay, both as words of the committed scale."""

    policy: Policy
    gradient: NDArray[np.int64]
    replay: NDArray[np.int64]
    replayed: Replayed

    @classmethod
    def of(cls, policy: Policy, gradient: NDArray[np.float32], replayed: Replayed) -> Observation:
        """What an honest client commits to, or any other gradient, beside a replay."""
        words = policy.fixed_point.encode_array("gradient", gradient)
        unused = policy.largest_lift - replayed.lift
        raised = replayed.gradient << unused if unused >= 0 else np.zeros_like(words)
        return cls(policy, words, raised, replayed)

    @property
    def headroom(self) -> int | None:
        """How many lifts the step did not use, None if there was nothing to learn."""
        unused = self.policy.largest_lift - self.replayed.lift
        return unused if unused >= 0 else None

    @cached_property
    def excess(self) -> Excess:
        return excess_of(MEASURE, self.gradient, self.replay, self.headroom)


def calibrated_paper_boundary(
    policy: Policy,
    observations: Sequence[Observation],
    alpha: float = PAPER_ALPHA,
    epsilon: float = PAPER_EPSILON,
) -> PaperBoundary:
    """The paper's rule: the largest profile of all steps, enlarged by a safety factor."""
    _require(observations)
    decode = policy.fixed_point.decode_words
    profiles = [
        real_profile(decode(each.gradient), decode(each.replay), policy.quantile_grid, epsilon)
        for each in observations
    ]
    return PaperBoundary.of_bounds(
        policy,
        observations[0].gradient.size,
        alpha * np.max([profile.absolute for profile in profiles], axis=0),
        alpha * np.max([profile.relative for profile in profiles], axis=0),
        epsilon,
        alpha * max(profile.infinity for profile in profiles),
    )


def calibrated_guided_boundary(
    policy: Policy, observations: Sequence[Observation], alpha: float = GUIDED_ALPHA
) -> GuidedBoundary:
    """Our rule: the largest excess of all steps, and the largest deviations from the advice."""
    _require(observations)
    grid = policy.quantile_grid
    largest = np.max([quantiles(each.excess.units, grid) for each in observations], axis=0)
    infinity = max(int(each.excess.units.max()) for each in observations)
    activation_error = max(each.replayed.activation_error for each in observations)
    over_ceiling = max(each.replayed.over_ceiling for each in observations)
    return GuidedBoundary.from_mapping(
        {
            "policy_hash": "0x" + policy.hash.hex(),
            "spu_version": policy.spu.version,
            "coordinates": observations[0].gradient.size,
            "grid": grid,
            "allowance_shift": MEASURE.allowance_shift,
            "scale_quantile": MEASURE.scale_quantile,
            "resolution_bits": MEASURE.resolution_bits,
            "bounds": [math.ceil(alpha * max(int(units), LEAST_UNITS)) for units in largest],
            "infinity": math.ceil(alpha * max(infinity, LEAST_UNITS)),
            "mask_tolerance": max(math.ceil(alpha * activation_error), LEAST_MASK_TOLERANCE),
            "ceiling_tolerance": max(math.ceil(alpha * over_ceiling), LEAST_CEILING_TOLERANCE),
        }
    )


def causes_of_rejection(boundary: Boundary, observation: Observation) -> list[str]:
    """Why a boundary rejects a replay: `absolute`, `relative`, `infinity`, `quantile`, `advice`.

    Empty if it does not. Inside MPC nobody learns this.
    """
    if isinstance(boundary, GuidedBoundary):
        return _guided_causes(boundary, observation)
    report = check_replay(boundary, observation.gradient, observation.replay)
    parts = {
        "absolute": not all(threshold.passed for threshold in report.absolute),
        "relative": not all(threshold.passed for threshold in report.relative),
        "infinity": report.beyond > 0,
    }
    return [cause for cause, failed in parts.items() if failed]


def _guided_causes(boundary: GuidedBoundary, observation: Observation) -> list[str]:
    report = check_guided_replay(
        boundary, observation.gradient, observation.replay, observation.headroom
    )
    replayed = observation.replayed
    parts = {
        "quantile": not report.passed and any(not f.startswith("inf") for f in report.failures()),
        "infinity": report.beyond > 0,
        "advice": replayed.wrong_side > boundary.mask_tolerance
        or replayed.over_ceiling > boundary.ceiling_tolerance,
    }
    return [cause for cause, failed in parts.items() if failed]


def _require(observations: Sequence[Observation]) -> None:
    if not observations:
        raise NothingToCalibrate
