"""How much of everything a run of the lab takes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from opfl_chain.attacks.pgd import BETAS
from opfl_chain.evaluation.lab.instances import BEGINNING, WHOLE_RUN
from opfl_chain.evaluation.recording import RecordingPlan

RUNS = ("lenet-61706-mnist", "lenet-61706-fashion-mnist")

PLANS = {
    "lenet-61706-mnist": RecordingPlan(30_000, 500, 1800, 500, 1),
    "lenet-61706-fashion-mnist": RecordingPlan(20_000, 200, 2000, 200, 1),
}
"""The steps of `evaluate boundary` and more between them, so that 2,000 are left to judge. All of
them are replayed by both rules."""

QUICK_PLAN = RecordingPlan(600, 20, 60, 20, 1)


@dataclass(frozen=True)
class LabSettings:
    """The paper's numbers, where it has them."""

    quick: bool = False
    seed: int = 42
    runs: tuple[str, ...] = RUNS
    calibration_steps: int = 100
    judged_steps: int = 2000
    attacked_part: float = 0.2
    instances: int = 200
    stages: tuple[str, ...] = (BEGINNING,)
    betas: tuple[float, ...] = BETAS
    rate_factors: tuple[float, ...] = (5.0, 25.0)
    """Learning rates, in multiples of the policy's, at which no verifier is attacked as well."""
    drift_rounds: int = 1000
    drift_start: int = 2000
    poisoned_steps: int = 40
    audit_repeats: int = 5
    simulated_jobs: int = 4000

    @classmethod
    def quickly(cls, runs: tuple[str, ...] = RUNS[:1]) -> LabSettings:
        """Of minutes, on records of the quick plan."""
        return cls(
            quick=True,
            runs=runs,
            calibration_steps=20,
            judged_steps=60,
            instances=6,
            stages=(WHOLE_RUN,),
            betas=(0.1, 1.0, 10.0),
            rate_factors=(25.0,),
            drift_rounds=24,
            drift_start=100,
            poisoned_steps=4,
            audit_repeats=1,
            simulated_jobs=200,
        )

    def plan_of(self, run: str) -> RecordingPlan:
        return QUICK_PLAN if self.quick else PLANS.get(run, QUICK_PLAN)

    @property
    def report(self) -> dict[str, Any]:
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }
