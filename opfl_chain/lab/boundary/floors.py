"""Detection floors: the smallest perturbations of honest gradients that a boundary rejects."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from opfl_chain.lab.boundary.records import RuleRecords
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.evidence import Observation, Profile
from opfl_chain.rules.rule import AnyRule

Vector = NDArray[np.float64]
Direction = Callable[[Vector, np.random.Generator], Vector]
"""Maps a gradient to the unit direction of its perturbation."""
PER_DECADE = 10
SIZES = tuple(10 ** (power / PER_DECADE) for power in range(-6 * PER_DECADE, 1))
"""Sizes of perturbations relative to the gradient's norm: 1e-6 to 1, ten per decade."""
_ROUNDING = 1 + 1e-9
"""Tolerance for inexact powers of ten."""


def dense_random(gradient: Vector, random: np.random.Generator) -> Vector:
    return _of_length_one(random.standard_normal(gradient.size))


def along_gradient(gradient: Vector, random: np.random.Generator) -> Vector:
    """Scale the gradient by 1 + beta."""
    del random
    return _of_length_one(gradient)


def top_random(part: float) -> Direction:
    """Move the largest coordinates only, all by the same amount, with random signs."""

    def direction(gradient: Vector, random: np.random.Generator) -> Vector:
        top = _largest(gradient, part)
        return _spread(gradient.size, top, random.choice((-1.0, 1.0), top.size))

    return direction


def top_against(part: float) -> Direction:
    """Move the largest coordinates only, all by the same amount, against their sign."""

    def direction(gradient: Vector, random: np.random.Generator) -> Vector:
        del random
        top = _largest(gradient, part)
        return _spread(gradient.size, top, np.where(gradient[top] < 0, 1.0, -1.0))

    return direction


PERTURBATIONS: Mapping[str, Direction] = MappingProxyType(
    {
        "dense": dense_random,
        "along": along_gradient,
        "top10pct": top_random(0.1),
        "top10pct_against": top_against(0.1),
        "top1pct": top_random(0.01),
        "top1pct_against": top_against(0.01),
        "single": top_against(0.0),
    }
)


def length(vector: Vector) -> float:
    """Return the L2 norm, at least the smallest positive number, so that division is safe."""
    return max(float(np.linalg.norm(vector)), float(np.finfo(np.float64).tiny))


def _largest(gradient: Vector, part: float) -> NDArray[np.int64]:
    """Return the indices of the largest part of the coordinates, at least one."""
    count = max(int(part * gradient.size), 1)
    return np.argpartition(np.abs(gradient), gradient.size - count)[-count:]


def _spread(size: int, where: NDArray[np.int64], signs: Vector) -> Vector:
    direction = np.zeros(size)
    direction[where] = signs
    return _of_length_one(direction)


def _of_length_one(vector: Vector) -> Vector:
    return vector * (1 / length(vector))


@dataclass(frozen=True, eq=False)
class Cheat:
    """One step whose gradient is moved in one direction by a variable amount."""

    rule: AnyRule
    honest: Observation
    gradient: Vector
    direction: Vector
    _profiles: dict[int, Profile] = field(default_factory=dict)

    def floor(self, boundary: Boundary) -> float | None:
        """Return the smallest of `SIZES` that is rejected, None if none is.

        Assumes that rejection is monotonic in the size of the perturbation.
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
            self._profiles[index] = self.rule.profile(replace(self.honest, gradient=words))
        return bool(self._profiles[index].causes(boundary))


def cheat_on(records: RuleRecords, t: int, kind: str, seed: int) -> Cheat:
    """Return a step with a perturbation of this kind, the same for every boundary by its seed."""
    gradient = records.step(t).gradient.astype(np.float64)
    random = np.random.default_rng([seed, t, list(PERTURBATIONS).index(kind)])
    direction = PERTURBATIONS[kind](gradient, random) * length(gradient)
    return Cheat(records.rule, records.observation(t), gradient, direction)


def floors_of(
    records: RuleRecords,
    boundaries: Mapping[float, Boundary],
    steps: Sequence[int],
    kinds: Sequence[str],
    seed: int,
) -> dict[float, dict[str, list[float | None]]]:
    """Return the floor of every step, by boundary and kind."""
    found: dict[float, dict[str, list[float | None]]] = {
        key: {kind: [] for kind in kinds} for key in boundaries
    }
    for done, t in enumerate(steps, 1):
        for kind in kinds:
            cheat = cheat_on(records, t, kind, seed)
            for key, boundary in boundaries.items():
                found[key][kind].append(cheat.floor(boundary))
        records.progress(f"perturbing {records.run}, {records.rule.name}", done, len(steps))
    return found


def floor_at(floors: Sequence[float | None], percent: int) -> float | None:
    """Return the perturbation that is rejected in `percent` of the steps, None if above 1."""
    if not floors:
        return None
    ordered = sorted(floor if floor is not None else np.inf for floor in floors)
    size = ordered[-(-percent * len(ordered) // 100) - 1]
    return float(size) if np.isfinite(size) else None


def seen(floors: Sequence[float | None], size: float) -> float | None:
    """Return the part of the steps in which perturbations of this size are rejected."""
    caught = [floor is not None and floor <= size * _ROUNDING for floor in floors]
    return sum(caught) / len(caught) if caught else None


def highest(steps: Sequence[int], floors: Sequence[float | None]) -> int | None:
    """Return the step with the highest floor."""
    sizes = [floor if floor is not None else np.inf for floor in floors]
    return max(zip(sizes, steps, strict=True))[1] if sizes else None


def floor_fields(floors: Mapping[str, Sequence[float | None]]) -> dict[str, float | None]:
    """Return the floors as report fields, relative to the L2 norm of the gradient."""
    return {
        f"floor_{kind}_{percent}": floor_at(each, percent)
        for kind, each in floors.items()
        for percent in (100, 99, 50)
    }
