"""The rule of proved steps: one distance between a gradient and the one that its advice implies.

A proof fixes every value of a step up to vanishing rounding, so that only the client's floating
point separates the two. The boundary is the largest such distance of honest steps, enlarged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from opfl_chain.circuits.boolean import BooleanCircuit, Shared
from opfl_chain.protocol.documents import Positive
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.closing import TOLERANCE_BITS, Tolerance
from opfl_chain.protocol.ring import Reals
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.evidence import (
    Evidence,
    Forms,
    Observation,
    Profile,
    QuantilePanel,
    RunSeries,
)
from opfl_chain.rules.rule import NothingToCalibrate, Rule, RuleError

LEAST_TOLERANCE = 2.0**-20
"""Lower limit of the tolerance before the safety factor: sixteen roundings of float32."""
ROUNDING_FACTOR = 2.0
"""The absolute tolerance is this many times the expected rounding of the committed words."""


class ProvedBoundary(Boundary):
    """The tolerance of a committed gradient, in units of 2^-40."""

    rule: Literal["proved"] = "proved"
    relative_tolerance: Annotated[int, Field(ge=1, lt=1 << 30)]
    """The allowed distance as a part of the gradient's norm."""
    absolute_tolerance: Positive
    """The allowed distance beside it, of gradients scaled up by the lift and the batch."""

    @property
    def tolerance(self) -> Tolerance:
        """Both tolerances."""
        return Tolerance(self.relative_tolerance, self.absolute_tolerance)


class NoCircuit(RuleError):
    """A proved step was given to a circuit."""

    def __init__(self) -> None:
        super().__init__("rule proved has no circuit: members answer queries on the client's proof")


@dataclass(frozen=True, eq=False)
class ProvedProfile(Profile):
    """The distance of a gradient, and what it is compared with; all in units of the gradient.

    At the largest lift there is next to nothing to learn: the gradient is below 2^-lift of the
    usual, and rounding to committed words may be all of it.
    """

    distance: float
    norm: float
    scale: float
    """The lift times the batch: what the absolute tolerance refers to."""

    @classmethod
    def of(cls, observation: Observation) -> ProvedProfile:
        policy, replay = observation.policy, observation.replay
        quantum = policy.fixed_point.quantum
        difference = observation.gradient.astype(np.float64) - replay.words
        lift = policy.largest_lift - (replay.headroom or 0)
        return cls(
            not observation.gradient.any() or replay.headroom == 0,
            0,
            float(np.linalg.norm(difference)) * quantum,
            float(np.linalg.norm(replay.words.astype(np.float64))) * quantum,
            2.0**lift * policy.data.batch_size,
        )

    def allowed(self, boundary: ProvedBoundary) -> float:
        """Return the largest distance that a boundary accepts."""
        one = 2.0**-TOLERANCE_BITS
        relative = boundary.relative_tolerance * one * self.norm
        return math.hypot(relative, boundary.absolute_tolerance * one / self.scale)

    def causes(self, boundary: ProvedBoundary) -> list[str]:
        return ["distance"] if self.distance > self.allowed(boundary) else []


class ProvedRule(Rule[ProvedBoundary]):
    """The rule of proved steps."""

    boundary = ProvedBoundary
    replay = "proved"
    alpha = 3.5
    trade_off = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)

    def tolerance(self, boundary: ProvedBoundary) -> Tolerance:
        return boundary.tolerance

    def replay_options(self, batch_size: int) -> Mapping[str, Any]:
        """Larger batches have more words, whose projections must stay below the same bound."""
        return {"unit_bits": 45 - min(2, math.ceil(math.log2(batch_size) / 2))}

    def calibrate(
        self, policy: Policy, observations: Sequence[Observation], alpha: float
    ) -> ProvedBoundary:
        if not observations:
            raise NothingToCalibrate
        coordinates = observations[0].gradient.size
        absolute = self._absolute(policy, coordinates)
        largest = LEAST_TOLERANCE
        for each in map(ProvedProfile.of, observations):
            rest = each.distance**2 - (absolute / each.scale) ** 2
            if each.norm and rest > 0:
                largest = max(largest, math.sqrt(rest) / each.norm)
        return ProvedBoundary.of_policy(
            policy,
            coordinates,
            relative_tolerance=math.ceil(alpha * largest * 2**TOLERANCE_BITS),
            absolute_tolerance=math.ceil(absolute * 2**TOLERANCE_BITS),
        )

    def _absolute(self, policy: Policy, coordinates: int) -> float:
        rounding = math.sqrt(coordinates / 12) * policy.fixed_point.quantum
        return ROUNDING_FACTOR * rounding * policy.data.batch_size * 2.0**policy.largest_lift

    def causes(self, boundary: ProvedBoundary, observation: Observation) -> list[str]:
        """Return `distance`, or nothing."""
        return ProvedProfile.of(observation).causes(boundary)

    def faults(
        self, circuit: BooleanCircuit, boundary: ProvedBoundary, evidence: Evidence, forms: Forms
    ) -> Shared:
        raise NoCircuit

    def profile(self, observation: Observation) -> ProvedProfile:
        return ProvedProfile.of(observation)

    def merged(self, boundaries: Sequence[ProvedBoundary]) -> ProvedBoundary:
        if not boundaries:
            raise NothingToCalibrate
        largest = max(each.relative_tolerance for each in boundaries)
        return boundaries[0].model_copy(update={"relative_tolerance": largest})

    def panels(
        self, boundary: ProvedBoundary, policy: Policy, profiles: Sequence[ProvedProfile]
    ) -> Sequence[QuantilePanel]:
        del boundary, policy, profiles
        return ()

    def largest_of_steps(
        self, boundary: ProvedBoundary, profiles: Sequence[ProvedProfile]
    ) -> RunSeries:
        return RunSeries(
            "Distance from the gradient that the advice implies",
            "parts of the allowed distance",
            [each.distance / each.allowed(boundary) for each in profiles],
            1.0,
        )

    def allowed_moves(
        self,
        boundary: ProvedBoundary,
        policy: Policy,
        gradient: NDArray[np.float32],
        wanted: Reals,
        headroom: int | None,
        part: float = 1.0,
    ) -> Reals:
        """Return bounds of equal size: the rule limits the whole move, in any direction."""
        distance = part * self._reach(boundary, policy, np.asarray(gradient, np.float64), headroom)
        return np.full(gradient.shape, distance / math.sqrt(max(gradient.size, 1)))

    def largest_distance(
        self, boundary: ProvedBoundary, policy: Policy, replay: Reals, headroom: int | None
    ) -> float:
        return self._reach(boundary, policy, replay, headroom)

    def _reach(
        self, boundary: ProvedBoundary, policy: Policy, gradient: Reals, headroom: int | None
    ) -> float:
        scale = 2.0 ** (policy.largest_lift - (headroom or 0)) * policy.data.batch_size
        norm = float(np.linalg.norm(gradient))
        return ProvedProfile(False, 0, 0.0, norm, scale).allowed(boundary)
