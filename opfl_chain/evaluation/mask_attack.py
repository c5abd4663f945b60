"""What a cheat gains by choosing its masks.

A guided replay follows any mask as long as no value is on the wrong side of its ReLU by more than
the tolerance. So the values within the tolerance of 0 are free to choose. The cheat flips those
that move its gradient most, and commits to the gradient of that path, which a replay agrees with.
How far that is from the honest gradient is all that masks are good for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.calibration.steps import HonestStep
from opfl_chain.evaluation.evaluated import Evaluated, spread
from opfl_chain.evaluation.float_gradients import FloatStep
from opfl_chain.evaluation.perturbations import length
from opfl_chain.evaluation.profiles import GuidedProfile
from opfl_chain.models.model import Model
from opfl_chain.models.relus import relu_shapes
from opfl_chain.protocol.guided import GuidedBoundary

PARTS = (1, 4)
"""The tolerance is divided by these."""
MOST_TRIED = 32
"""Of free values, one by one; where more are free (a flat background), the rest are not tried."""


@dataclass(frozen=True)
class Attack:
    """On one step. Changes are relative to the norm of the honest gradient."""

    free_units: int
    change_all_flipped: float
    change_chosen: float


class MaskAttacker:
    """Flips masks within a tolerance, which is of values, not of quanta."""

    def __init__(self, model: Model, tolerance: float, *, largest_lift: int | None = None) -> None:
        self._step = FloatStep(model, largest_lift=largest_lift)
        self._tolerance = tolerance
        self._shapes = relu_shapes(model)

    def attack(self, step: HonestStep) -> Attack:
        free = np.flatnonzero(np.abs(step.pre_activations) <= self._tolerance)
        if not free.size:
            return Attack(0, 0.0, 0.0)
        honest = self._gradient(step, np.zeros(0, np.int64))

        def change(flipped: NDArray[np.int64]) -> float:
            return float(np.linalg.norm(self._gradient(step, flipped) - honest)) / length(honest)

        everything = change(free)
        alone = sorted(
            ((change(free[[i]]), i) for i in range(min(free.size, MOST_TRIED))), reverse=True
        )
        best, chosen = 0.0, free[:0]
        for _, place in alone:
            tried = np.append(chosen, free[place])
            if (moved := change(tried)) > best:
                best, chosen = moved, tried
        return Attack(free.size, everything, max(best, everything))

    def _gradient(self, step: HonestStep, flipped: NDArray[np.int64]) -> NDArray[np.float64]:
        masks = step.pre_activations > 0
        masks[flipped] ^= True
        ends = np.cumsum([math.prod(shape) for shape in self._shapes.values()])
        parts = np.split(masks, ends[:-1])
        by_layer = {
            name: part.reshape(shape)
            for (name, shape), part in zip(self._shapes.items(), parts, strict=True)
        }
        return self._step.run(step, by_layer).gradient.astype(np.float64)


def mask_attack_rows(evaluated: Evaluated) -> list[dict[str, Any]]:
    """Attacks within the tolerance of the boundary, and within fractions of it."""
    boundary = evaluated.boundary
    assert isinstance(boundary, GuidedBoundary)
    return [_row(evaluated, boundary.mask_tolerance // part) for part in PARTS]


def _row(evaluated: Evaluated, quanta: int) -> dict[str, Any]:
    """Attacks on held-out steps of a run. Honest steps need less of the tolerance than it is."""
    records = evaluated.records
    tolerance = quanta / (1 << records.policy.fraction_bits)
    lift = records.policy.largest_lift
    attacker = MaskAttacker(records.run.model, tolerance, largest_lift=lift)
    steps = spread(evaluated.with_gradient, evaluated.extent.mask_attack_steps)
    attacks = []
    for done, t in enumerate(steps, 1):
        attacks.append(attacker.attack(records.store.load_step(t)))
        records.progress(f"flipping masks of {records.run}", done, len(steps))
    profiles = (records.profiles[t] for t in evaluated.held_out)
    wrong = [each.wrong_side for each in profiles if isinstance(each, GuidedProfile)]
    free = np.array([each.free_units for each in attacks])
    chosen = np.array([each.change_chosen for each in attacks])
    return {
        **evaluated.names,
        "mask_tolerance_quanta": quanta,
        "mask_tolerance_value": tolerance,
        "honest_wrong_side_max_quanta": max(wrong),
        "steps": len(attacks),
        "steps_without_free_units": int((free == 0).sum()),
        "free_units_mean": float(free.mean()),
        "free_units_max": int(free.max()),
        "relative_change_all_flipped_max": max(each.change_all_flipped for each in attacks),
        "relative_change_chosen_mean": float(chosen.mean()),
        **{
            f"relative_change_chosen_p{percent}": float(np.percentile(chosen, percent))
            for percent in (50, 90, 99, 100)
        },
    }
