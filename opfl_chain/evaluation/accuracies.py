"""How far the recorded runs were trained: the model of the last recorded step, on test examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opfl_chain.evaluation.evaluated import Evaluated
from opfl_chain.evaluation.records import RuleRecords
from opfl_chain.training.datasets import load_dataset
from opfl_chain.training.evaluate import evaluate


def run_rows(evaluated: Sequence[Evaluated], data_dir: Path | None = None) -> list[dict[str, Any]]:
    """One row for each run, whatever rules it was replayed by."""
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
        "training_steps": last + 1,
        "recorded_steps": len(records.store.steps()),
        "test_examples": found.examples,
        "test_accuracy": found.accuracy,
    }
