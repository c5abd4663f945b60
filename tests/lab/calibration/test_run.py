"""Runs that are interrupted or lose a member, and folders of another run."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from constructed import GUIDED, PAPER

from opfl_chain.lab.calibration import run as run_module
from opfl_chain.lab.calibration.run import MOST_FAILURES, CalibrationPlan, CalibrationRun
from opfl_chain.lab.errors import CommitteeKeepsFailing, RecordsOfAnotherRun, RecordsOfUnknownRun
from opfl_chain.learning.data.datasets import synthetic_dataset
from opfl_chain.learning.data.examples import Dataset
from opfl_chain.mpc.local import LocalCommittee
from opfl_chain.mpc.session.errors import PeerLost
from opfl_chain.rules.registry import rule_for

DATASET = synthetic_dataset(train=50, test=1)


def silent(what: str, done: int, total: int) -> None:
    del what, done, total


def calibration_run(folder: Path, dataset: Dataset = DATASET) -> CalibrationRun:
    return CalibrationRun(GUIDED, rule_for(GUIDED), dataset, folder)


def test_a_run_survives_a_member_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committees: list[LocalCommittee] = []
    notices: list[str] = []

    class Watched(LocalCommittee):
        def __init__(self) -> None:
            super().__init__()
            committees.append(self)

    def kill_once(what: str, done: int, total: int) -> None:
        pid = committees[0].parties[1].pid
        if len(committees) == 1 and done == 1 and pid:
            os.kill(pid, signal.SIGKILL)

    monkeypatch.setattr(run_module, "LocalCommittee", Watched)
    monkeypatch.setattr(run_module, "WIDTH", 2)
    run, plan = calibration_run(tmp_path), CalibrationPlan.of(3)
    run.train(plan, silent)
    run.replay(plan, kill_once, notices.append)
    assert run.recorded(plan) == 3
    assert len(committees) == 2
    (notice,) = notices
    assert "member 1" in notice
    assert notice.endswith("Continuing in a new session.")


def test_a_committee_that_keeps_failing_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notices: list[str] = []

    def lost(*_: Any) -> None:
        raise PeerLost(2, "127.0.0.1:9")

    monkeypatch.setattr(CalibrationRun, "_session", lost)
    run, plan = calibration_run(tmp_path), CalibrationPlan.of(1)
    with pytest.raises(CommitteeKeepsFailing, match=r"4 sessions in a row failed.*member 2 at"):
        run.replay(plan, silent, notices.append)
    assert len(notices) == MOST_FAILURES


def test_training_records_only_what_is_missing(tmp_path: Path) -> None:
    run = calibration_run(tmp_path)
    run.train(CalibrationPlan.of(3), silent)
    files = sorted((tmp_path / "records" / "steps").iterdir())
    before = [file.stat().st_mtime_ns for file in files]
    trained: list[int] = []
    run.train(CalibrationPlan.of(2, held_out=2), lambda _, done, total: trained.append(done))
    assert run.store.steps() == [0, 1, 2, 3]
    assert trained == [1, 2, 3, 4]
    assert [file.stat().st_mtime_ns for file in files] == before
    trained.clear()
    run.train(CalibrationPlan.of(4), lambda _, done, total: trained.append(done))
    assert trained == []


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    calibration_run(tmp_path)
    calibration_run(tmp_path)
    with pytest.raises(RecordsOfAnotherRun, match=r"policy hash is 0x.*, here it is 0x.*--out"):
        CalibrationRun(PAPER, rule_for(PAPER), DATASET, tmp_path)
    with pytest.raises(RecordsOfAnotherRun, match="dataset is synthetic, here it is mnist"):
        calibration_run(tmp_path, dataclasses.replace(DATASET, name="mnist"))
    with pytest.raises(RecordsOfAnotherRun, match="examples is 50, here it is 60"):
        calibration_run(tmp_path, synthetic_dataset(train=60, test=1))


@pytest.mark.parametrize("content", [None, "", "[]", "{"])
def test_records_that_nobody_claims_are_refused(tmp_path: Path, content: str | None) -> None:
    (tmp_path / "records").mkdir()
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(RecordsOfUnknownRun, match="does not identify the run of the records"):
        calibration_run(tmp_path)
