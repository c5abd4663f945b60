"""The detection floor: the smallest relative perturbation that a boundary rejects."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from opfl_chain.calibration.boundaries import Observation
from opfl_chain.evaluation.perturbations import PERTURBATIONS, Vector, length
from opfl_chain.evaluation.profiles import Profile, profile_of
from opfl_chain.evaluation.records import RuleRecords
from opfl_chain.protocol.rules import Boundary

PER_DECADE = 10
SIZES = tuple(10 ** (power / PER_DECADE) for power in range(-6 * PER_DECADE, 1))
"""Of perturbations, as parts of the gradient's norm: 1e-6 to 1, ten a decade."""
_ROUNDING = 1 + 1e-9
"""Powers of ten are not exact."""


@dataclass(frozen=True, eq=False)
class Cheat:
    """One step with its gradient moved in one direction, by as much as is asked for."""

    honest: Observation
    gradient: Vector
    direction: Vector
    _profiles: dict[int, Profile] = field(default_factory=dict)

    def floor(self, boundary: Boundary) -> float | None:
        """The smallest of `SIZES` that is rejected, None if none is.

        A larger perturbation in the same direction is taken to be rejected if a smaller one is.
        """
        found = bisect.bisect_left(
            range(len(SIZES)), True, key=lambda index: self._rejected(boundary, index)
        )
        return SIZES[found] if found < len(SIZES) else None

    def _rejected(self, boundary: Boundary, index: int) -> bool:
        if index not in self._profiles:
            moved = self.gradient + SIZES[index] * self.direction
            policy = self.honest.policy
            words = policy.fixed_point.encode_array("gradient", moved)
            self._profiles[index] = profile_of(
                Observation(policy, words, self.honest.replay, self.honest.replayed)
            )
        return bool(self._profiles[index].causes(boundary))


def cheat_on(records: RuleRecords, t: int, kind: str, seed: int) -> Cheat:
    """A step with a perturbation of this kind; the seed makes it the same for every boundary."""
    gradient = records.step(t).gradient.astype(np.float64)
    random = np.random.default_rng([seed, t, list(PERTURBATIONS).index(kind)])
    direction = PERTURBATIONS[kind](gradient, random) * length(gradient)
    return Cheat(records.observation(t), gradient, direction)


def floors_of(
    records: RuleRecords,
    boundaries: Mapping[float, Boundary],
    steps: Sequence[int],
    kinds: Sequence[str],
    seed: int,
) -> dict[float, dict[str, list[float | None]]]:
    """The floor of every step, by boundary and kind."""
    found: dict[float, dict[str, list[float | None]]] = {
        key: {kind: [] for kind in kinds} for key in boundaries
    }
    for done, t in enumerate(steps, 1):
        for kind in kinds:
            cheat = cheat_on(records, t, kind, seed)
            for key, boundary in boundaries.items():
                found[key][kind].append(cheat.floor(boundary))
        records.progress(f"perturbing {records.run}, {records.rule}", done, len(steps))
    return found


def floor_at(floors: Sequence[float | None], percent: int) -> float | None:
    """The smallest perturbation that is rejected in this part of the steps; None if above 1."""
    if not floors:
        return None
    ordered = sorted(floor if floor is not None else np.inf for floor in floors)
    size = ordered[-(-percent * len(ordered) // 100) - 1]
    return float(size) if np.isfinite(size) else None


def seen(floors: Sequence[float | None], size: float) -> float | None:
    """The part of the steps in which perturbations of this size are rejected."""
    caught = [floor is not None and floor <= size * _ROUNDING for floor in floors]
    return sum(caught) / len(caught) if caught else None


def highest(steps: Sequence[int], floors: Sequence[float | None]) -> int | None:
    """The step in which a cheat has most room."""
    sizes = [floor if floor is not None else np.inf for floor in floors]
    return max(zip(sizes, steps, strict=True))[1] if sizes else None


def floor_fields(floors: Mapping[str, Sequence[float | None]]) -> dict[str, float | None]:
    """As a report has them: relative to the L2 norm of the gradient."""
    return {
        f"floor_{kind}_{percent}": floor_at(each, percent)
        for kind, each in floors.items()
        for percent in (100, 99, 50)
    }
