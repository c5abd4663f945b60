"""The report of an evaluation: rows by rule and run, and the tables over all of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from opfl_chain.lab.boundary.environments import ReplayAll, environment_rows
from opfl_chain.lab.boundary.evaluated import Evaluated, Extent, Row
from opfl_chain.lab.boundary.floors import PER_DECADE, SIZES
from opfl_chain.lab.boundary.mask_attack import mask_attack_rows
from opfl_chain.lab.boundary.records import RuleRecords, RunName
from opfl_chain.lab.calibration.run import Progress
from opfl_chain.lab.statistics import CONFIDENCE, Rate
from opfl_chain.learning.data.datasets import load_dataset
from opfl_chain.learning.local_step import evaluate
from opfl_chain.rules.registry import BUILTIN_RULES
from opfl_chain.rules.rule import AnyRule

PACKAGES = ("opfl_chain", "spu", "torch", "jax", "numpy")


def run_rows(evaluated: Sequence[Evaluated], data_dir: Path | None = None) -> list[dict[str, Any]]:
    """Return one row per run, regardless of the rules that it was replayed by."""
    runs = {str(each.records.run): each.records for each in evaluated}
    return [_row(records, data_dir) for records in runs.values()]


def _row(records: RuleRecords, data_dir: Path | None) -> dict[str, Any]:
    run, last = records.run, records.store.steps()[-1]
    weights = run.model.layout.unflatten(records.store.load_step(last).weights)
    test = load_dataset(run.dataset, data_dir).test
    found = evaluate(run.model, weights, test, records.policy.data)
    return {
        "model": run.model.name,
        "dataset": run.dataset,
        "batch_size": run.batch_size,
        "training_steps": last + 1,
        "recorded_steps": len(records.store.steps()),
        "test_examples": found.examples,
        "test_accuracy": found.accuracy,
    }


def across_datasets(all_evaluated: Sequence[Evaluated]) -> list[Row]:
    """Return a row for every pair of data sets under the same rule and model."""
    return [
        one.on_another(other)
        for one in all_evaluated
        for other in all_evaluated
        if one is not other
        and one.records.rule == other.records.rule
        and one.records.run.model.name == other.records.run.model.name
        and one.records.run.batch_size == other.records.run.batch_size
    ]


def totals(rows: Sequence[Row]) -> list[Row]:
    """Return the totals of all runs of each rule."""
    by_rule: dict[str, Counter[str]] = {row["rule"]: Counter() for row in rows}
    causes: dict[str, Counter[str]] = {rule: Counter() for rule in by_rule}
    for row in rows:
        by_rule[row["rule"]].update(honest_steps=row["honest_steps"], rejected=row["rejected"])
        causes[row["rule"]].update(row["rejected_by_cause"])
    return [
        {
            "rule": rule,
            **Rate(each["honest_steps"], each["rejected"], dict(causes[rule])).report,
        }
        for rule, each in by_rule.items()
    ]


def opened(
    root: Path,
    runs: Sequence[RunName],
    rules: Sequence[AnyRule],
    extent: Extent,
    progress: Progress,
) -> list[Evaluated]:
    """Open all rules on all runs, so that missing records are found before the computation."""
    records = [RuleRecords.open(root, run, rule, progress) for run in runs for rule in rules]
    return [Evaluated(each, extent) for each in records]


def boundary_report(
    evaluated: Sequence[Evaluated], replay_all: ReplayAll, data_dir: Path | None = None
) -> dict[str, Any]:
    """Compute one row per rule, model and data set, and the tables. A null floor means "above 1".

    Perturbations and differences are relative to the L2 norm of the honest gradient.
    """
    rows = [each.row() for each in evaluated]
    return {
        "rows": rows,
        "runs": run_rows(evaluated, data_dir),
        "totals": totals(rows),
        "calibration_steps": [row for each in evaluated for row in each.by_calibration_steps()],
        "across_datasets": across_datasets(evaluated),
        "across_stages": [row for each in evaluated for row in each.by_stage()],
        "trade_off": [row for each in evaluated for row in each.trade_off()],
        "environments": [row for each in evaluated for row in environment_rows(each, replay_all)],
        "mask_attack": [row for each in evaluated for row in mask_attack_rows(each)],
        "settings": settings(evaluated),
    }


def settings(evaluated: Sequence[Evaluated]) -> dict[str, Any]:
    """Return the settings and versions that the results depend on."""
    rules = list(dict.fromkeys([*BUILTIN_RULES, *(each.records.rule for each in evaluated)]))
    return {
        "command": "opfl evaluate boundary",
        "runs": list(dict.fromkeys(str(each.records.run) for each in evaluated)),
        "rules": list(dict.fromkeys(each.records.rule.name for each in evaluated)),
        **evaluated[0].extent.report,
        "alpha": {rule.name: rule.alpha for rule in rules},
        **{
            f"{rule.name}_{name}": value for rule in rules for name, value in rule.constants.items()
        },
        "confidence": CONFIDENCE,
        "smallest_perturbation": SIZES[0],
        "largest_perturbation": SIZES[-1],
        "perturbations_per_decade": PER_DECADE,
        "versions": {
            "python": sys.version.split()[0],
            **{name: metadata.version(name) for name in PACKAGES},
        },
    }
