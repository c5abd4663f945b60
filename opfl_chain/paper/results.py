"""Settings of the lab, and the folder of its results: one JSON file per table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from opfl_chain.adversaries.pgd import BETAS
from opfl_chain.lab import errors
from opfl_chain.lab.boundary.recording import RecordingPlan
from opfl_chain.paper.instances import BEGINNING, WHOLE_RUN
from opfl_chain.system.files import write_atomically

RUNS = ("lenet-61706-mnist", "lenet-61706-fashion-mnist")

PLANS = {
    "lenet-61706-mnist": RecordingPlan(30_000, 500, 1800, 500, 1),
    "lenet-61706-fashion-mnist": RecordingPlan(20_000, 200, 2000, 200, 1),
}
"""The steps of `evaluate boundary` and more between them, so that 2,000 are left to judge. Both
rules replay all of them."""

QUICK_PLAN = RecordingPlan(600, 20, 60, 20, 1)
CLAIM = "lab.json"
Report = dict[str, Any]


@dataclass(frozen=True)
class LabSettings:
    """Sizes and seeds of a lab run: the paper's numbers where it gives them."""

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
    """Multiples of the policy's learning rate for the attacks without a verifier."""
    drift_rounds: int = 1000
    drift_start: int = 2000
    poisoned_steps: int = 40
    audit_repeats: int = 5
    simulated_jobs: int = 4000

    @classmethod
    def quickly(cls, runs: tuple[str, ...] = RUNS[:1]) -> LabSettings:
        """Return settings that take minutes, for records of the quick plan."""
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


class Results:
    """The results of one set of settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def claim(self, settings: LabSettings, names: tuple[str, ...]) -> None:
        """Mark a new folder with these settings, or check that an existing one has them."""
        path, ours = self.folder / CLAIM, settings.report
        if not path.exists():
            if strays := [name for name in names if self._path(name).exists()]:
                raise errors.ResultsOfUnknownRun(self.folder, f"{strays[0]}.json", CLAIM)
            write_atomically(path, json.dumps(ours, indent=2) + "\n")
            return
        theirs = _read(path)
        for name, value in ours.items():
            if theirs.get(name) != value:
                raise errors.ResultsOfAnotherRun(self.folder, name, theirs.get(name), value)

    def has(self, name: str) -> bool:
        return self._path(name).exists()

    def report(self, name: str) -> Report:
        if not self.has(name):
            raise errors.ResultMissing(self.folder, name)
        found = _read(self._path(name))
        if found.get("name") != name:
            other = f"it is the report of {found.get('name')!r}"
            raise errors.ResultDamaged(self._path(name), other)
        return found

    def finish(self, name: str, report: Report) -> None:
        """Store the result and delete its partial cells."""
        write_atomically(self._path(name), json.dumps(report, indent=1) + "\n")
        self._partial(name).unlink(missing_ok=True)

    def cells(self, name: str) -> Cells:
        return Cells(self._partial(name))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _partial(self, name: str) -> Path:
        return self.folder / f"{name}.partial.json"


class Cells:
    """The cells of a table, each stored as soon as it is computed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[str, Any] = _read(path) if path.exists() else {}

    def of(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return the stored cell of this key, or compute and store it."""
        if key not in self._kept:
            self._kept[key] = compute()
            write_atomically(self._path, json.dumps(self._kept) + "\n")
        return self._kept[key]

    def __contains__(self, key: str) -> bool:
        return key in self._kept


def _read(path: Path) -> Report:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise errors.ResultDamaged(path, str(error)) from error
    if not isinstance(found, dict):
        raise errors.ResultDamaged(path, "it is not a JSON object")
    return found
