"""One rule on one run: false rejections and detection floors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

from opfl_chain.lab.boundary.floors import PERTURBATIONS, floor_fields, floors_of, highest, seen
from opfl_chain.lab.boundary.records import RuleRecords
from opfl_chain.lab.calibration.proving import form_of
from opfl_chain.lab.errors import TooFewSteps
from opfl_chain.lab.statistics import Rate
from opfl_chain.rules.boundary import Boundary

Row = dict[str, Any]
T = TypeVar("T")

CALIBRATION_SIZES = (20, 50, 100, 200, 500)
TRADE_OFF_KINDS = ("dense", "top1pct")
STAGES = ("first third", "second third", "last third")


@dataclass(frozen=True)
class Extent:
    """Numbers of steps and replays to evaluate."""

    calibration_steps: int = 100
    floor_steps: int = 200
    environment_steps: int = 200
    replays_per_environment: int = 40
    mask_attack_steps: int = 200
    seed: int = 0

    @classmethod
    def quick(cls) -> Extent:
        """Return an extent that takes minutes, for records of the quick plan."""
        return cls(20, 12, 12, 2, 12)

    @property
    def report(self) -> Row:
        return asdict(self)


class Evaluated:
    """One rule on one run, split into calibration steps and held-out steps."""

    def __init__(self, records: RuleRecords, extent: Extent) -> None:
        if len(records.steps) <= extent.calibration_steps:
            raise TooFewSteps(
                records.store.folder,
                records.rule.name,
                len(records.steps),
                extent.calibration_steps,
            )
        self.records = records
        self.extent = extent
        self.calibration = records.steps[: extent.calibration_steps]
        self.held_out = records.steps[extent.calibration_steps :]
        self.boundary = records.boundary(self.calibration)

    @property
    def names(self) -> Row:
        run = self.records.run
        return {
            "rule": self.records.rule.name,
            "model": run.model.name,
            "dataset": run.dataset,
            "batch_size": run.batch_size,
        }

    def rate(self, boundary: Boundary, steps: Iterable[int]) -> Row:
        profiles = self.records.profiles
        return Rate.of(boundary, [profiles[t] for t in steps]).report

    def sample(self, most: int) -> list[int]:
        """Return at most `most` held-out steps, spaced evenly over the run."""
        return spread(self.held_out, most)

    def open_to_cheats(self) -> list[int]:
        """Return sampled steps that are accepted when honest and have a gradient to perturb."""
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
        policy = self.records.policy
        return {
            **self.names,
            **({"statement": form_of(policy)} if policy.proof is not None else {}),
            "alpha": self.records.rule.alpha,
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
        """Rejection rates by calibration size, as far as the run was recorded without gaps.

        All sizes are evaluated on the same steps, which none of them was calibrated on.
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
        """Evaluate this run's boundary on the held-out steps of another run."""
        return {
            **other.names,
            "calibrated_on": self.records.run.dataset,
            "calibration_steps": len(self.calibration),
            **other.rate(self.boundary, other.held_out),
        }

    def trade_off(self) -> list[Row]:
        """Rejections and detection floors by safety factor, if the rule compares several."""
        boundaries = {
            alpha: self.records.boundary(self.calibration, alpha)
            for alpha in self.records.rule.trade_off
        }
        if not boundaries:
            return []
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
    """Return at most `most` of the steps, evenly spaced."""
    chosen = np.linspace(0, len(steps) - 1, min(most, len(steps))).round().astype(int)
    return [steps[index] for index in chosen]


def by_stage(steps: Sequence[int], run_length: int) -> dict[str, list[int]]:
    """Group steps by the third of the training run that they are in."""
    stages: dict[str, list[int]] = {stage: [] for stage in STAGES}
    for t in steps:
        stages[STAGES[min(t * len(STAGES) // run_length, len(STAGES) - 1)]].append(t)
    return stages
