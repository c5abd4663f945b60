"""`opfl calibrate` on synthetic data, with three processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from constructed import GUIDED, PAPER

from opfl_chain import cli
from opfl_chain.learning.data.published import PublishedDataset
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.registry import boundary_from_json

STEPS = ["--steps", "6", "--held-out", "2"]

# A shell starts jobs in the background with SIGINT ignored, also in their children.
INTERRUPTIBLE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from opfl_chain import cli
cli.main()
"""


def opfl(*arguments: str | Path) -> int:
    """Run a command as a user does, and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["opfl", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    code = ended.value.code
    assert isinstance(code, int)
    return code


def calibrate(folder: Path, *arguments: str | Path) -> int:
    return opfl("calibrate", "--dataset", "synthetic", "--out", folder, *arguments)


def replays(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = sorted((folder / "records" / "guided").glob("*.npz"))
    return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in files}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a finished calibration."""
    path = tmp_path_factory.mktemp("calibration")
    assert calibrate(path, *STEPS) == 0
    return path


def test_command_writes_a_boundary_of_its_policy_and_a_report(folder: Path) -> None:
    policy = Policy.from_json((folder / "policy.json").read_bytes())
    boundary = boundary_from_json((folder / "boundary.json").read_bytes())
    report = json.loads((folder / "report.json").read_text())
    assert policy == GUIDED
    assert boundary.policy_hash == report["policy_hash"] == "0x" + policy.hash.hex()
    assert report["boundary_hash"] == "0x" + boundary.hash.hex()
    assert (report["rule"], report["dataset"]) == ("guided", "synthetic")
    assert report["calibration"]["rejected"] == 0
    assert report["held_out"]["honest_steps"] == 2
    assert report["held_out"]["frr_upper95"] == pytest.approx(1 - 0.05**0.5)
    assert "held-out honest steps rejected" in (folder / "report.md").read_text()
    assert (folder / "boundary.png").read_bytes().startswith(b"\x89PNG")
    assert not list(folder.rglob("*.partial"))


def test_command_replays_only_missing_steps(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = replays(folder)
    (folder / "records" / "guided" / "0000004.npz").unlink()
    summary = tmp_path / "report.json"
    assert calibrate(folder, *STEPS, "--json", summary) == 0
    after = replays(folder)
    assert before.keys() == after.keys()
    assert [name for name in after if after[name] != before[name]] == ["0000004.npz"]
    assert f"7 of 8 replays are already in {folder}: resuming" in capfd.readouterr().err
    assert json.loads(summary.read_text()) == json.loads((folder / "report.json").read_text())


def test_another_alpha_needs_no_replay(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    boundary = (folder / "boundary.json").read_bytes()
    assert calibrate(folder, *STEPS, "--alpha", "0.01") == 0
    assert json.loads((folder / "report.json").read_text())["held_out"]["rejected"] == 2
    assert "nothing left to replay" in capfd.readouterr().err
    assert calibrate(folder, *STEPS) == 0
    assert (folder / "boundary.json").read_bytes() == boundary


def test_command_refuses_a_folder_of_another_policy(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "boundary.json").read_bytes()
    assert calibrate(folder, *STEPS, "--rule", "paper") == 1
    assert "holds records of another run (policy hash is" in capfd.readouterr().err
    assert (folder / "boundary.json").read_bytes() == before


def test_command_names_a_damaged_record(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    record = folder / "records" / "guided" / "0000001.npz"
    whole = record.read_bytes()
    record.write_bytes(whole[:1000])
    try:
        assert calibrate(folder, *STEPS) == 1
    finally:
        record.write_bytes(whole)
    assert f"{record} is damaged" in capfd.readouterr().err


def test_ctrl_c_keeps_what_was_replayed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTIBLE, "calibrate", "--dataset", "synthetic"]
    command += ["--steps", "200", "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        while not replays(tmp_path):
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    before = replays(tmp_path)
    assert f"interrupted: {len(before)} of 200 replays are in" in errors.decode()
    assert not (tmp_path / "boundary.json").exists()
    assert not list(tmp_path.rglob("*.partial"))
    assert calibrate(tmp_path, "--steps", str(len(before) + 1)) == 0
    after = replays(tmp_path)
    assert len(after) == len(before) + 1
    assert before.items() <= after.items()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "0"], "--steps is 0, a boundary needs at least 1 honest step"),
        (["--model", "alexnet"], "unknown model 'alexnet'. Known models: lenet-431080"),
        (["--dataset", "cifar"], "unknown data set 'cifar'"),
        (["--alpha", "nan"], "--alpha is nan, it must be a finite number above 0"),
        (["--policy", "/nowhere/policy.json"], "No such file or directory"),
    ],
)
def test_errors_are_one_sentence_and_exit_with_1(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert calibrate(tmp_path / "out", *arguments) == 1
    errors = capfd.readouterr().err.strip()
    assert errors.startswith("error: ")
    assert "\n" not in errors
    assert message in errors
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "lenet-431080"], "is a policy for model lenet-61706, not for lenet-431080"),
        (["--rule", "guided"], "is a policy for rule paper, not for guided (--rule)"),
    ],
)
def test_a_policy_that_is_not_the_one_named_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    file = tmp_path / "policy.json"
    file.write_bytes(PAPER.canonical_json)
    assert calibrate(tmp_path / "out", "--policy", file, *arguments) == 1
    assert message in capfd.readouterr().err


def test_missing_data_are_said_to_be(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PublishedDataset, "_folders", lambda _, data_dir: iter([data_dir]))
    monkeypatch.setattr(PublishedDataset, "_fetches", lambda *_: iter(()))
    assert calibrate(tmp_path / "out", "--dataset", "mnist", "--data-dir", tmp_path) == 1
    errors = capfd.readouterr().err
    assert "MNIST was not found. Tried:" in errors
    assert "Do one of these:" in errors


def test_the_bench_measures_both_in_one_run(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    assert opfl("bench", "calibrate", "--steps", "3", "--json", file) == 0
    report = json.loads(file.read_text())
    assert report["steps"] == 3
    assert report["steps_per_minute"] == pytest.approx(60 / report["replay_seconds"])
    assert report["naive_replay_seconds"] > 0
