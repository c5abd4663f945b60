"""The interface of rules: calibration of boundaries on honest steps, and their judgement of others.

To add one, implement the three abstract methods of :class:`Rule`, and register an instance under
its name in the entry point group `opfl_chain.rules`. The methods below them have defaults: they
serve the lab and adaptive attackers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from opfl_chain.circuits.boolean import BooleanCircuit, Shared
from opfl_chain.protocol.policy import PAPER_GRID, Policy
from opfl_chain.protocol.proof.closing import Tolerance
from opfl_chain.protocol.ring import Reals
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.evidence import (
    Evidence,
    Forms,
    Observation,
    Profile,
    QuantilePanel,
    RunSeries,
    WholeObservation,
)
from opfl_chain.rules.quantiles import quantiles

B = TypeVar("B", bound=Boundary)


class RuleError(Exception):
    """Base class of the errors of rules."""


class NothingToCalibrate(RuleError):
    """Calibration was given no honest steps."""

    def __init__(self) -> None:
        super().__init__("cannot calibrate a boundary: no honest steps were given")


class MovesUnknown(RuleError):
    """An adaptive attacker meets a rule that does not tell how far gradients may be moved."""

    def __init__(self, rule: str) -> None:
        super().__init__(
            f"rule {rule} does not tell how far a gradient may be moved: implement"
            " `Rule.allowed_moves`, or choose an attack that does not use the boundary"
        )


class Rule(ABC, Generic[B]):
    """A rule that accepts or rejects the replay of a committed gradient."""

    boundary: type[B]
    """The document of its bounds. The default of the document's field `rule` names the rule."""
    replay: ClassVar[str] = "plain"
    """The kind of the policy's replay that it judges: `plain`, `guided` or `proved`."""
    alpha: ClassVar[float] = 1.0
    """The default safety factor of bounds."""
    grid: ClassVar[tuple[int, ...]] = PAPER_GRID
    """The quantiles of default policies, in thousandths."""

    def tolerance(self, boundary: B) -> Tolerance | None:
        """Return the tolerance of proved steps, None if the committee replays steps."""
        del boundary
        return None

    def replay_options(self, batch_size: int) -> Mapping[str, Any]:
        """Return settings of the replay that depend on the batch, for default policies."""
        del batch_size
        return {}

    @property
    def name(self) -> str:
        """The name in boundaries, commands and entry points."""
        return str(self.boundary.model_fields["rule"].default)

    @abstractmethod
    def calibrate(self, policy: Policy, observations: Sequence[Observation], alpha: float) -> B:
        """Return a boundary that accepts these honest steps, its bounds enlarged by alpha."""

    @abstractmethod
    def causes(self, boundary: B, observation: Observation) -> list[str]:
        """Return the causes of a rejection, none if the replay is accepted.

        This is the reference that the circuit must match. MPC reveals the verdict, not the causes.
        """

    @abstractmethod
    def faults(
        self, circuit: BooleanCircuit, boundary: B, evidence: Evidence, forms: Forms
    ) -> Shared:
        """Compute words that are zero if and only if there are no causes, inside MPC."""

    # For the lab, which judges thousands of steps by hundreds of boundaries.

    for_comparison: ClassVar[bool] = False
    """True if others are compared with this rule; recordings then replay fewer steps by it."""
    trade_off: ClassVar[Sequence[float]] = ()
    """Safety factors to compare, from few missed cheats to few rejected honest steps."""

    @property
    def constants(self) -> Mapping[str, float]:
        """Constants of the calibration by name, for reports."""
        return {}

    def profile(self, observation: Observation) -> Profile:
        """Reduce an observation to what decides the verdict of any boundary."""
        zero = not observation.gradient.any()
        return WholeObservation(zero, observation.replay.wrong_side, observation, self.causes)

    def merged(self, boundaries: Sequence[B]) -> B | None:
        """Return the boundary of several steps from those of each step alone.

        None if the rule calibrates on all steps at once only.
        """
        del boundaries
        return None

    def mask_tolerance(self, boundary: B) -> int | None:
        """Return the distance from zero, in quanta, within which a client may choose masks.

        None if the rule judges no masks.
        """
        del boundary
        return None

    def panels(
        self, boundary: B, policy: Policy, profiles: Sequence[Any]
    ) -> Sequence[QuantilePanel]:
        """Return plots of the quantiles in these profiles of the rule, and of their bounds.

        A rule with profiles of its own overrides this too.
        """
        del boundary
        seen = [each.observation for each in profiles]
        apart = [np.abs(each.gradient - each.replay.words) for each in seen]
        steps = np.array([quantiles(each, policy.quantile_grid) for each in apart], np.float64)
        quantum = policy.fixed_point.quantum
        return (QuantilePanel("Absolute discrepancy", steps * quantum, None, None, quantum),)

    def largest_of_steps(self, boundary: B, profiles: Sequence[Any]) -> RunSeries | None:
        """Return the largest discrepancy of each step, None if steps are not comparable."""
        del boundary, profiles
        return None

    # For adaptive attackers, which know the boundary.

    def allowed_moves(
        self,
        boundary: B,
        policy: Policy,
        gradient: NDArray[np.float32],
        wanted: Reals,
        headroom: int | None,
        part: float = 1.0,
    ) -> Reals:
        """Return how far each coordinate may be moved, in units of the gradient.

        The gradient itself stands for the replay; the rounding of the real replay uses up some of
        it, so an attacker that must not fail uses only a `part` of every bound. `wanted` ranks the
        coordinates: a quantile test limits how many of them exceed each bound, not which ones.
        """
        raise MovesUnknown(self.name)

    def largest_distance(
        self, boundary: B, policy: Policy, replay: Reals, headroom: int | None
    ) -> float:
        """Return an upper bound on the L2 distance of accepted gradients from the replay."""
        del boundary, policy, replay, headroom
        return math.inf


AnyRule = Rule[Any]
