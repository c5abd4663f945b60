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
from opfl_chain.paper.adaptive import (
    adaptive_pgd,
    more_adaptive_pgd,
    more_tail_pgd,
    tail_pgd,
)
from opfl_chain.paper.costs import cost
from opfl_chain.paper.deterrence import deterrence
from opfl_chain.paper.drift import drift, more_drift
from opfl_chain.paper.general import general_attacks
from opfl_chain.paper.lab_run import LabRun
from opfl_chain.paper.results import LabSettings, Report, Results
from opfl_chain.rules.registry import BUILTIN_RULES
from opfl_chain.rules.rule import AnyRule

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
    rules: Sequence[AnyRule] = BUILTIN_RULES

    def __post_init__(self) -> None:
        self.results.claim(self.settings, NAMES)

    def make_records(self) -> None:
        """Train and replay the steps that are not recorded yet."""
        for name in self.settings.runs:
            plan = self.settings.plan_of(name)
            run = RunName.parse(name)
            record(self._root, run, plan, self.rules, self.committees, self.progress, self.data_dir)

    def evaluate(self, name: str) -> Report:
        """Return the stored result of this name, or compute and store it.

        Rows of rules that a stored table of attacks lacks are added to it.
        """
        known = self._kept(name)
        if known is not None and not (missing := self._missing(name, known)):
            return known
        started = time.time()
        body = self._computations[name]() if known is None else self._more(name, known, missing)
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

    def _missing(self, name: str, known: Report) -> list[AnyRule]:
        """Return the rules of this lab by which a table of adaptive attacks has no rows."""
        if name not in (ADAPTIVE, TAIL, DRIFT):
            return []
        present = {row["verifier"] for row in known["rows"]}
        return [rule for rule in self.rules if f"opfl-{rule.name}" not in present]

    def _more(self, name: str, known: Report, rules: Sequence[AnyRule]) -> Report:
        lab, cells = self._run(self.settings.runs[0], rules), self.results.cells(name)
        if name == ADAPTIVE:
            return more_adaptive_pgd(lab, self.settings, cells, known)
        if name == TAIL:
            return more_tail_pgd(lab, self.settings, cells, known)
        return more_drift(lab, self.settings, replayed_by(self.committees), cells, known)

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

    def _run(self, name: str, rules: Sequence[AnyRule] | None = None) -> LabRun:
        return LabRun(
            self._root,
            RunName.parse(name),
            self.settings.calibration_steps,
            self.progress,
            self.data_dir,
            self.rules if rules is None else rules,
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
