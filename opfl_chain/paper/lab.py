"""The lab behind the commands: makes records, computes tables, stores them with settings."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from opfl_chain.lab.boundary.recording import Committees, record, replayed_by
from opfl_chain.lab.boundary.records import RunName
from opfl_chain.lab.boundary.report import PACKAGES
from opfl_chain.lab.calibration.run import Progress
from opfl_chain.lab.errors import RecordsNeeded
from opfl_chain.paper.adaptive import adaptive_pgd, tail_pgd
from opfl_chain.paper.costs import cost
from opfl_chain.paper.deterrence import deterrence
from opfl_chain.paper.drift import drift
from opfl_chain.paper.general import general_attacks
from opfl_chain.paper.lab_run import LabRun
from opfl_chain.paper.results import LabSettings, Report, Results
from opfl_chain.rules.registry import BUILTIN_RULES

GENERAL, ADAPTIVE, TAIL = "general-attacks", "adaptive-pgd", "tail-pgd"
DRIFT, COST, DETERRENCE = "drift", "cost", "deterrence"
NAMES = (GENERAL, ADAPTIVE, TAIL, DRIFT, COST, DETERRENCE)
WITHOUT_RECORDS = (COST, DETERRENCE)


@dataclass(eq=False)
class Lab:
    settings: LabSettings
    results: Results
    records: Path | None
    committees: Committees
    progress: Progress
    data_dir: Path | None = None

    def __post_init__(self) -> None:
        self.results.claim(self.settings, NAMES)

    def make_records(self) -> None:
        """Train and replay the steps that are not recorded yet."""
        for name in self.settings.runs:
            plan = self.settings.plan_of(name)
            run = RunName.parse(name)
            record(
                self._root, run, plan, BUILTIN_RULES, self.committees, self.progress, self.data_dir
            )

    def evaluate(self, name: str) -> Report:
        """Return the stored result of this name, or compute and store it."""
        if self.results.has(name):
            return self.results.report(name)
        started = time.time()
        body = self._computations[name]()
        report = {
            "name": name,
            "command": f"opfl evaluate {name}",
            "settings": self.settings.report,
            "versions": {
                "python": sys.version.split()[0],
                **{package: metadata.version(package) for package in PACKAGES},
            },
            "seconds_of_last_session": time.time() - started,
            **body,
        }
        self.results.finish(name, report)
        return report

    @cached_property
    def _computations(self) -> dict[str, Callable[[], dict[str, Any]]]:
        settings, cells = self.settings, self.results.cells
        return {
            GENERAL: self._general,
            ADAPTIVE: lambda: adaptive_pgd(self._first, settings, cells(ADAPTIVE)),
            TAIL: lambda: tail_pgd(self._first, settings, cells(TAIL)),
            DRIFT: lambda: drift(self._first, settings, replayed_by(self.committees), cells(DRIFT)),
            COST: lambda: cost(settings, lambda what: self.progress(what, 0, 1)),
            DETERRENCE: lambda: deterrence(settings, self._kept(GENERAL), self._kept(DRIFT)),
        }

    def _general(self) -> dict[str, Any]:
        cells = self.results.cells(GENERAL)
        runs = [
            cells.of(name, lambda name=name: general_attacks(self._run(name), self.settings))  # type: ignore[misc]
            for name in self.settings.runs
        ]
        return {"runs": runs}

    @cached_property
    def _first(self) -> LabRun:
        return self._run(self.settings.runs[0])

    def _run(self, name: str) -> LabRun:
        return LabRun(
            self._root,
            RunName.parse(name),
            self.settings.calibration_steps,
            self.progress,
            self.data_dir,
        )

    @property
    def _root(self) -> Path:
        if self.records is None:
            raise RecordsNeeded
        return self.records

    def _kept(self, name: str) -> Report | None:
        return self.results.report(name) if self.results.has(name) else None


def chosen(name: str) -> Sequence[str]:
    """Return the tables that a name selects."""
    return NAMES if name == "all" else (name,)
