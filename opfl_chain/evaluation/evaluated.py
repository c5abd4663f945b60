"""One rule on one run: false rejections and detection floors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

from opfl_chain.evaluation.errors import TooFewSteps
from opfl_chain.evaluation.floors import floor_fields, floors_of, highest, seen
from opfl_chain.evaluation.perturbations import PERTURBATIONS
from opfl_chain.evaluation.rates import Rate, by_stage
from opfl_chain.evaluation.records import DEFAULT_ALPHA, RuleRecords
from opfl_chain.protocol.rules import Boundary

Row = dict[str, Any]
T = TypeVar("T")

CALIBRATION_SIZES = (20, 50, 100, 200, 500)
ALPHAS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
TRADE_OFF_KINDS = ("dense", "top1pct")


@dataclass(frozen=True)
class Extent:
    """How much is evaluated."""

    calibration_steps: int = 100
    floor_steps: int = 200
    environment_steps: int = 200
    replays_per_environment: int = 40
    mask_attack_steps: int = 200
    seed: int = 0

    @classmethod
    def quick(cls) -> Extent:
        """Of minutes, on records of the quick plan."""
        return cls(20, 12, 12, 2, 12)

    @property
    def report(self) -> Row:
        return asdict(self)


class Evaluated:
    """One rule on one run: what it was calibrated on, and the rest."""

    def __init__(self, records: RuleRecords, extent: Extent) -> None:
        if len(records.steps) <= extent.calibration_steps:
            raise TooFewSteps(
                records.store.folder, records.rule, len(records.steps), extent.calibration_steps
            )
        self.records = records
        self.extent = extent
        self.calibration = records.steps[: extent.calibration_steps]
        self.held_out = records.steps[extent.calibration_steps :]
        self.boundary = records.boundary(self.calibration)

    @property
    def names(self) -> Row:
        run = self.records.run
        return {"rule": self.records.rule, "model": run.model.name, "dataset": run.dataset}

    def rate(self, boundary: Boundary, steps: Iterable[int]) -> Row:
        profiles = self.records.profiles
        return Rate.of(boundary, [profiles[t] for t in steps]).report

    def sample(self, most: int) -> list[int]:
        """Held-out steps, evenly over the run."""
        return spread(self.held_out, most)

    def open_to_cheats(self) -> list[int]:
        """Of a sample, steps that are accepted as they are, and have a gradient to move."""
        profiles = self.records.profiles
        return [
            t
            for t in spread(self.with_gradient, self.extent.floor_steps)
            if not profiles[t].causes(self.boundary)
        ]

    @property
    def with_gradient(self) -> list[int]:
        """Held-out steps that have something to learn."""
        return [t for t in self.held_out if not self.records.profiles[t].zero]

    def row(self) -> Row:
        steps = self.open_to_cheats()
        kinds = tuple(PERTURBATIONS)
        floors = floors_of(self.records, {0: self.boundary}, steps, kinds, self.extent.seed)[0]
        return {
            **self.names,
            "alpha": DEFAULT_ALPHA[self.records.rule],
            "calibration_steps": len(self.calibration),
            **self.rate(self.boundary, self.held_out),
            "rejected_steps": [t for t in self.held_out if self._rejects(t)],
            "zero_gradient_steps": len(self.held_out) - len(self.with_gradient),
            "floor_steps": len(steps),
            **floor_fields(floors),
            "seen_dense_1e-3": seen(floors["dense"], 1e-3),
            "seen_top1pct_1e-2": seen(floors["top1pct"], 1e-2),
            "highest_floor_dense_step": highest(steps, floors["dense"]),
        }

    def _rejects(self, t: int) -> bool:
        return bool(self.records.profiles[t].causes(self.boundary))

    def by_calibration_steps(self) -> list[Row]:
        """As far as the beginning was recorded without gaps.

        All sizes are judged on the same steps: those that none of them was calibrated on.
        """
        steps = self.records.steps
        sizes = [
            size
            for size in CALIBRATION_SIZES
            if size < len(steps) and steps[size - 1] - steps[0] == size - 1
        ]
        held_out = steps[max(sizes) :] if sizes else []
        return [
            {
                **self.names,
                "calibration_steps": size,
                **self.rate(self.records.boundary(steps[:size]), held_out),
            }
            for size in sizes
        ]

    def by_stage(self) -> list[Row]:
        length = self.records.store.steps()[-1] + 1
        return [
            {
                **self.names,
                "stage": stage,
                "first_step": min(steps, default=None),
                "last_step": max(steps, default=None),
                **self.rate(self.boundary, steps),
            }
            for stage, steps in by_stage(self.held_out, length).items()
        ]

    def on_another(self, other: Evaluated) -> Row:
        """Calibrated on this run, judged on the held-out steps of another."""
        return {
            **other.names,
            "calibrated_on": self.records.run.dataset,
            "calibration_steps": len(self.calibration),
            **other.rate(self.boundary, other.held_out),
        }

    def trade_off(self) -> list[Row]:
        """The safety factor of the guided rule against the floor."""
        boundaries = {alpha: self.records.boundary(self.calibration, alpha) for alpha in ALPHAS}
        steps = self.open_to_cheats()
        floors = floors_of(self.records, boundaries, steps, TRADE_OFF_KINDS, self.extent.seed)
        return [
            {
                **self.names,
                "alpha": alpha,
                **self.rate(boundary, self.held_out),
                "floor_steps": len(steps),
                **floor_fields(floors[alpha]),
            }
            for alpha, boundary in boundaries.items()
        ]


def spread(steps: Sequence[T], most: int) -> list[T]:
    """At most so many of the steps, evenly chosen."""
    chosen = np.linspace(0, len(steps) - 1, min(most, len(steps))).round().astype(int)
    return [steps[index] for index in chosen]
