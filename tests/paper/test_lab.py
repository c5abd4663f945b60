"""The lab on records that it makes itself, with replays in MPC, and its errors."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluation_support import RUN
from typer.testing import CliRunner, Result

from opfl_chain.cli import app
from opfl_chain.lab.boundary.recording import RecordingPlan, record, replayed_by, three_threads
from opfl_chain.lab.boundary.records import quiet
from opfl_chain.lab.calibration.steps import StepStore
from opfl_chain.lab.errors import (
    RecordsInconsistent,
    RecordsMissing,
    RecordsNeeded,
    ResultMissing,
    ResultsOfAnotherRun,
    TooFewSteps,
)
from opfl_chain.paper.adaptive import adaptive_pgd, more_adaptive_pgd, tail_pgd
from opfl_chain.paper.drift import drift
from opfl_chain.paper.general import ATTACKS, general_attacks
from opfl_chain.paper.lab_run import LabRun
from opfl_chain.paper.pages import write_page, write_result
from opfl_chain.paper.results import Cells, LabSettings, Results
from opfl_chain.rules.registry import BUILTIN_RULES, rule_named

PLAN = RecordingPlan(training_steps=230, first=8, spread=12, compared_first=8, compared_every=1)
SETTINGS = replace(
    LabSettings.quickly((str(RUN),)),
    calibration_steps=6,
    judged_steps=10,
    instances=2,
    betas=(0.1, 10.0),
    drift_rounds=4,
    drift_start=6,
    poisoned_steps=2,
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("records")
    record(root, RUN, PLAN, BUILTIN_RULES, three_threads, quiet)
    return root


@pytest.fixture(scope="module")
def lab(root: Path) -> LabRun:
    return LabRun(root, RUN, SETTINGS.calibration_steps)


def opfl(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def test_general_attacks_are_caught_and_honest_steps_are_not(lab: LabRun, tmp_path: Path) -> None:
    run = general_attacks(lab, SETTINGS)
    assert [each["attack"] for each in run["attacks"]] == list(ATTACKS)
    for each in run["attacks"]:
        assert each["asr"]["opfl-guided"] == 0
        assert each["asr"]["none"] == 1 - each["without_effect"] / each["attacked_steps"]
    assert run["honest"]["opfl-guided"]["rejected"] == 0
    report = {"name": "general-attacks", "command": "", "settings": SETTINGS.report, "runs": [run]}
    text = write_result(tmp_path, report)
    assert "Quick run" in text
    assert "| reuse:2 |" in text
    assert (tmp_path / "general-attacks.png").stat().st_size > 10_000


def test_adaptive_attacks_succeed_unless_opfl_verifies(lab: LabRun, tmp_path: Path) -> None:
    report = adaptive_pgd(lab, SETTINGS, Cells(tmp_path / "cells.json"))
    asr = {(row["verifier"], row["beta"]): row["asr"] for row in report["rows"]}
    assert len(asr) == 8 * 2
    for rule in BUILTIN_RULES:
        assert asr[f"opfl-{rule.name}", 10.0] == 0
    for name, beta in asr:
        assert asr[name, beta] <= asr["none", beta]
    assert all(row["beta_max"] < 0.01 for row in report["largest_accepted_move"])
    for row in report["learning_rates"]:
        assert row["learning_rate"] == pytest.approx(25 * lab.policy.optimizer.learning_rate)
        assert row["asr"] == row["flipped"] / row["instances"]
    kept = json.loads((tmp_path / "cells.json").read_text())
    assert len(kept) == (8 + 1) * 2
    again = adaptive_pgd(lab, SETTINGS, Cells(tmp_path / "cells.json"))
    assert again["rows"] == report["rows"]


def test_tail_attacks_have_their_own_grids(lab: LabRun, tmp_path: Path) -> None:
    report = tail_pgd(lab, SETTINGS, Cells(tmp_path / "cells.json"))
    assert report["grids"]["0.01"][-1] == 990
    assert report["grids"]["0.1"][-1] == 900
    for row in report["rows"]:
        if row["verifier"] != "none":
            assert row["asr"] == 0


def test_drift_is_accepted_and_moves_little(lab: LabRun, tmp_path: Path) -> None:
    replay_all = replayed_by(three_threads)
    report = drift(lab, SETTINGS, replay_all, Cells(tmp_path / "cells.json"))
    rows = {row["verifier"]: row for row in report["rows"]}
    guided = rows["opfl-guided"]
    assert guided["accepted"] == guided["honest_accepted"] == SETTINGS.drift_rounds
    assert 0 < guided["relative_move_median"] < 1e-3
    assert guided["distance_from_honest_model"] < 1e-3 * rows["none"]["distance_from_honest_model"]
    assert rows["rofl-l2"]["accepted"] == rows["none"]["accepted"] == SETTINGS.drift_rounds
    proved = rows["opfl-proved"]
    assert proved["accepted"] == proved["honest_accepted"] == SETTINGS.drift_rounds
    assert 0 < proved["relative_move_median"] < guided["relative_move_median"] / 10
    assert report["poison"][1] == {"rule": "guided", "steps": 2, "accepted": 2}
    assert report["poison"][2] == {"rule": "proved", "steps": 2, "accepted": 2}


def test_rules_that_a_table_lacks_are_added_to_it(root: Path, lab: LabRun, tmp_path: Path) -> None:
    proved = rule_named("proved")
    alone = LabRun(root, RUN, SETTINGS.calibration_steps, rules=[proved])
    assert (alone.calibration, alone.held_out) == (lab.calibration, lab.held_out)

    def without(report: dict[str, Any]) -> dict[str, Any]:
        kept = {
            name: [row for row in report[name] if "proved" not in (row.get("verifier") or "")]
            for name in ("rows", "largest_accepted_move")
            if name in report
        }
        return {**report, **kept}

    def names(report: dict[str, Any]) -> set[str]:
        return {row["verifier"] for row in report["rows"]}

    cells = Cells(tmp_path / "all.json"), Cells(tmp_path / "more.json")
    whole = adaptive_pgd(lab, SETTINGS, cells[0])
    known = without(whole)
    assert "opfl-proved" not in names(known)
    more = more_adaptive_pgd(alone, SETTINGS, cells[1], known)
    assert names(more) == names(whole)
    reached = {row["verifier"]: row["beta_max"] for row in more["largest_accepted_move"]}
    assert reached["opfl-proved"] < reached["opfl-guided"]
    elsewhere = {**known, "instances": {"whole run": [1, 2]}}
    with pytest.raises(RecordsInconsistent, match="other instances"):
        more_adaptive_pgd(alone, SETTINGS, cells[1], elsewhere)


def test_records_of_other_training_are_refused(root: Path, tmp_path: Path) -> None:
    copied = tmp_path / "records"
    shutil.copytree(root, copied)
    store = StepStore(copied / str(RUN))
    lab = LabRun(copied, RUN, SETTINGS.calibration_steps)
    t = lab.held_out[0]
    step = store.load_step(t)
    store.save_step(replace(step, gradient=step.gradient + np.float32(1)))
    with pytest.raises(RecordsInconsistent, match=f"not reproduce the gradient of step {t}"):
        general_attacks(lab, SETTINGS)


def test_missing_records_and_results_are_one_line(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert isinstance(opfl("tail-pgd", "--quick", "--out", out).exception, RecordsNeeded)
    records = tmp_path / "none"
    missing = opfl("drift", "--quick", "--only", RUN, "--out", tmp_path / "b", "--records", records)
    assert isinstance(missing.exception, RecordsMissing)
    few = opfl("drift", "--quick", "--only", RUN, "--out", tmp_path / "b", "--records", root)
    assert isinstance(few.exception, TooFewSteps)
    full = opfl("deterrence", "--out", out)
    assert isinstance(full.exception, ResultsOfAnotherRun)
    page = opfl("page", "--results", out, "--to", tmp_path / "page.md")
    assert isinstance(page.exception, ResultMissing)


def test_deterrence_needs_no_records(tmp_path: Path) -> None:
    result = opfl("deterrence", "--quick", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    report = Results(tmp_path).report("deterrence")
    assert report["chances_from"] == "assumed"
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".md", ".png"}
    with pytest.raises(ResultMissing):
        write_page(Results(tmp_path), tmp_path / "page.md")
