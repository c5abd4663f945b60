"""Mask attack: a cheat that chooses its masks within the tolerance.

A guided replay follows any mask as long as no value is on the wrong side of its ReLU by more than
the tolerance. So a cheat may choose the masks of values within the tolerance of 0. It flips those
that move its gradient most, and commits to the resulting gradient, which the replay agrees with.
The distance of that gradient from the honest one is the most that a choice of masks achieves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.lab.boundary.evaluated import Evaluated, spread
from opfl_chain.lab.boundary.executions import FloatStep
from opfl_chain.lab.boundary.floors import length
from opfl_chain.lab.calibration.steps import HonestStep
from opfl_chain.learning.model import Model, relu_shapes

PARTS = (1, 4)
"""Divisors of the tolerance, one row each."""
MOST_TRIED = 32
"""Limit of free values tried one by one; a flat background may have many more."""


@dataclass(frozen=True)
class MaskAttack:
    """The attack on one step. Changes are relative to the norm of the honest gradient."""

    free_units: int
    change_all_flipped: float
    change_chosen: float


class MaskAttacker:
    """Flips masks within a tolerance, which is in real units, not in quanta."""

    def __init__(self, model: Model, tolerance: float, *, largest_lift: int | None = None) -> None:
        self._step = FloatStep(model, largest_lift=largest_lift)
        self._tolerance = tolerance
        self._model = model

    def attack(self, step: HonestStep) -> MaskAttack:
        free = np.flatnonzero(np.abs(step.pre_activations) <= self._tolerance)
        if not free.size:
            return MaskAttack(0, 0.0, 0.0)
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
        return MaskAttack(free.size, everything, max(best, everything))

    def _gradient(self, step: HonestStep, flipped: NDArray[np.int64]) -> NDArray[np.float64]:
        masks = step.pre_activations > 0
        masks[flipped] ^= True
        shapes = relu_shapes(self._model, len(step.labels))
        ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
        parts = np.split(masks, ends[:-1])
        by_layer = {
            name: part.reshape(shape)
            for (name, shape), part in zip(shapes.items(), parts, strict=True)
        }
        return self._step.run(step, by_layer).gradient.astype(np.float64)


def mask_attack_rows(evaluated: Evaluated) -> list[dict[str, Any]]:
    """Return one row for the tolerance of the boundary, and for each fraction of it.

    There are none if the rule judges no masks.
    """
    tolerance = evaluated.records.rule.mask_tolerance(evaluated.boundary)
    return [] if tolerance is None else [_row(evaluated, tolerance // part) for part in PARTS]


def _row(evaluated: Evaluated, quanta: int) -> dict[str, Any]:
    """Attack held-out steps of a run, and compare with the tolerance that honest steps need."""
    records = evaluated.records
    tolerance = quanta / (1 << records.policy.fraction_bits)
    lift = records.policy.largest_lift
    attacker = MaskAttacker(records.run.model, tolerance, largest_lift=lift)
    steps = spread(evaluated.with_gradient, evaluated.extent.mask_attack_steps)
    attacks = []
    for done, t in enumerate(steps, 1):
        attacks.append(attacker.attack(records.store.load_step(t)))
        records.progress(f"flipping masks of {records.run}", done, len(steps))
    wrong = [records.profiles[t].wrong_side for t in evaluated.held_out]
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
