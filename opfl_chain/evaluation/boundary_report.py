"""The whole evaluation of boundaries, as one report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from opfl_chain.calibration.boundaries import PAPER_EPSILON
from opfl_chain.calibration.run import Progress
from opfl_chain.evaluation.accuracies import run_rows
from opfl_chain.evaluation.binomial import CONFIDENCE
from opfl_chain.evaluation.environment_check import ReplayAll, environment_rows
from opfl_chain.evaluation.evaluated import Evaluated, Extent
from opfl_chain.evaluation.floors import PER_DECADE, SIZES
from opfl_chain.evaluation.mask_attack import mask_attack_rows
from opfl_chain.evaluation.records import DEFAULT_ALPHA, GUIDED, RuleRecords, RunName
from opfl_chain.evaluation.tables import across_datasets, totals, trade_offs

PACKAGES = ("opfl_chain", "spu", "torch", "jax", "numpy")


def opened(
    root: Path, runs: Sequence[RunName], rules: Sequence[str], extent: Extent, progress: Progress
) -> list[Evaluated]:
    """All rules on all runs. Whatever is missing is found here, before anything is computed."""
    records = [RuleRecords.open(root, run, rule, progress) for run in runs for rule in rules]
    return [Evaluated(each, extent) for each in records]


def boundary_report(
    evaluated: Sequence[Evaluated], replay_all: ReplayAll, data_dir: Path | None = None
) -> dict[str, Any]:
    """One row for each rule, model and data set, and the tables. null is "more than 1" of a floor.

    Perturbations and differences are relative to the L2 norm of the honest gradient.
    """
    guided = [each for each in evaluated if each.records.rule == GUIDED]
    rows = [each.row() for each in evaluated]
    return {
        "rows": rows,
        "runs": run_rows(evaluated, data_dir),
        "totals": totals(rows),
        "calibration_steps": [row for each in evaluated for row in each.by_calibration_steps()],
        "across_datasets": across_datasets(evaluated),
        "across_stages": [row for each in evaluated for row in each.by_stage()],
        "trade_off": trade_offs(evaluated),
        "environments": [row for each in evaluated for row in environment_rows(each, replay_all)],
        "mask_attack": [row for each in guided for row in mask_attack_rows(each)],
        "settings": settings(evaluated),
    }


def settings(evaluated: Sequence[Evaluated]) -> dict[str, Any]:
    """What the figures depend on."""
    return {
        "command": "opfl evaluate boundary",
        "runs": list(dict.fromkeys(str(each.records.run) for each in evaluated)),
        "rules": list(dict.fromkeys(each.records.rule for each in evaluated)),
        **evaluated[0].extent.report,
        "alpha": DEFAULT_ALPHA,
        "paper_epsilon": PAPER_EPSILON,
        "confidence": CONFIDENCE,
        "smallest_perturbation": SIZES[0],
        "largest_perturbation": SIZES[-1],
        "perturbations_per_decade": PER_DECADE,
        "versions": {
            "python": sys.version.split()[0],
            **{name: metadata.version(name) for name in PACKAGES},
        },
    }
