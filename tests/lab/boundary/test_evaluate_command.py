"""`opfl evaluate boundary` on records that it makes itself, with replays in MPC."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from evaluation_support import GUIDED, PAPER, RUN
from typer.testing import CliRunner, Result

from opfl_chain.cli import app
from opfl_chain.lab.boundary.recording import PLANS, RecordingPlan, record, three_threads
from opfl_chain.lab.boundary.records import RuleRecords, form_file, quiet
from opfl_chain.lab.calibration.proving import form_of
from opfl_chain.lab.calibration.steps import StepStore
from opfl_chain.lab.errors import RecordsInconsistent, RecordsMissing, TooFewSteps
from opfl_chain.rules.registry import BUILTIN_RULES, rule_named

PROVED = rule_named("proved")
PLAN = RecordingPlan(training_steps=30, first=5, spread=3, compared_first=5, compared_every=1)
FIELDS = {
    *("rule", "model", "dataset", "calibration_steps", "honest_steps", "rejected"),
    *("rejected_by_cause", "frr", "frr_upper95", "floor_dense_100", "floor_dense_50"),
    *("floor_along_100", "floor_top10pct_100", "floor_top1pct_100", "floor_top1pct_50"),
    "floor_single_100",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("records")
    record(root, RUN, PLAN, BUILTIN_RULES, three_threads, quiet)
    return root


def evaluate(root: Path, *options: str) -> Result:
    arguments = ("evaluate", "boundary", "--records", root, "--only", RUN, "--quick", "--threads")
    return CliRunner().invoke(app, [*map(str, arguments), *options])


def test_the_report_has_rows_tables_and_pictures(root: Path, tmp_path: Path) -> None:
    json_file, out = tmp_path / "boundary.json", tmp_path / "out"
    options = ("--calibration-steps", "5", "--json", str(json_file), "--out", str(out))
    result = evaluate(root, *options)
    assert result.exit_code == 0, result.output
    report = json.loads(json_file.read_text())
    assert [row["rule"] for row in report["rows"]] == ["paper", "guided", "proved"]
    for row in report["rows"]:
        assert row.keys() >= FIELDS
        assert row["honest_steps"] == 3
    guided, proved = report["rows"][1:]
    assert proved["rejected"] == 0
    assert all(proved[f"floor_{kind}_100"] < 3e-5 for kind in ("dense", "along", "single"))
    assert guided["rejected"] == 0
    assert guided["floor_dense_100"] < 1e-3
    assert guided["floor_top1pct_100"] < 1e-2
    assert [row["alpha"] for row in report["trade_off"]][:2] == [1.0, 1.5]
    assert len(report["environments"]) == 24
    for row in report["environments"]:
        if row["rule"] != "paper" and "stand-in" not in row["environment"]:
            assert row["recorded_replay_rejected"] == row["another_replay_rejected"] == 0
    assert len(report["mask_attack"]) == 2
    assert len(report["across_stages"]) == 9
    assert report["across_datasets"] == []
    assert report["settings"]["seed"] == 0
    pages = {path.name for path in out.iterdir()}
    assert {"boundary.md", "trade-off.png", "excess.png", f"profiles-paper-{RUN}.png"} <= pages
    assert "## Each rule on each run" in (out / "boundary.md").read_text()


def test_recording_goes_on_where_it_was(root: Path) -> None:
    store = StepStore(root / str(RUN))
    written = {path: path.stat().st_mtime_ns for path in store.folder.rglob("*.npz")}
    lost = store.folder / PAPER.name / f"{PLAN.kept[-1]:07d}.npz"
    lost.unlink()
    told: list[str] = []
    record(root, RUN, PLAN, BUILTIN_RULES, three_threads, lambda what, *_: told.append(what))
    assert told == [f"replaying {RUN}, paper"]
    again = {path: path.stat().st_mtime_ns for path in store.folder.rglob("*.npz")}
    assert {path for path in again if again[path] != written[path]} == {lost}


def test_gradients_that_other_proofs_imply_are_refused(root: Path, tmp_path: Path) -> None:
    copied = tmp_path / "records"
    shutil.copytree(root, copied)
    store = StepStore(copied / str(RUN))
    path = form_file(store, PROVED)
    assert path.read_text().strip() == form_of(RUN.policy(PROVED))

    def refused() -> None:
        for act in (
            lambda: RuleRecords.open(copied, RUN, PROVED),
            lambda: record(copied, RUN, PLAN, [PROVED], three_threads, quiet),
        ):
            with pytest.raises(RecordsInconsistent, match="record them again with --make"):
                act()

    path.write_text("0x" + bytes(32).hex() + "\n")
    refused()
    path.unlink()
    refused()
    shutil.rmtree(path.parent)
    record(copied, RUN, PLAN, [PROVED], three_threads, quiet)
    assert RuleRecords.open(copied, RUN, PROVED).steps == PLAN.kept


def test_missing_and_too_few_records_are_one_line(root: Path, tmp_path: Path) -> None:
    assert isinstance(evaluate(tmp_path).exception, RecordsMissing)
    assert isinstance(evaluate(root).exception, TooFewSteps)


def test_plans_hold_the_steps_that_they_say() -> None:
    plan = PLANS["lenet-61706-mnist"]
    assert len(plan.replayed(GUIDED)) == 1100
    assert plan.kept[:500] == list(range(500))
    assert plan.kept[-1] == 29_999
    assert len(plan.replayed(PAPER)) == 650
    assert set(plan.replayed(PAPER)) < set(plan.replayed(GUIDED))
