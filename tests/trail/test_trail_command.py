"""`opfl trail`, as a user runs it."""

import json
import subprocess
import sys

import pytest
from command_line import opfl


def opfl_trail(*arguments):
    return opfl("trail", *arguments)


def opfl_trail_process(*arguments):
    command = [sys.executable, "-m", "opfl_chain.cli", "trail", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def place(played):
    arguments = ["--rpc-url", played.chain.rpc_url, "--deployment", played.deployment]
    return [*arguments, "--job", played.job]


@pytest.fixture(scope="module")
def export(place, tmp_path_factory):
    folder = tmp_path_factory.mktemp("command")
    finished = opfl_trail_process(
        "export", *place, "--out", folder, "--json", folder / "report.json"
    )
    assert finished.returncode == 0, finished.stderr
    return folder


def test_export_writes_the_files_and_says_so(played, export):
    report = json.loads((export / "report.json").read_text())
    assert report["events"] == len(played.trail.entries)
    assert report["digest"] == json.loads((export / "trail.json").read_text())["digest"]
    assert all((export / name).is_file() for name in report["files"])


def test_verify_shows_what_was_checked(place, export, tmp_path):
    report = tmp_path / "report.json"
    finished = opfl_trail_process("verify", *place, "--export", export, "--json", report)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "everything holds" in finished.stdout
    assert "rolls" in finished.stdout
    assert "note: roots of rolls are not recomputed" in finished.stdout
    content = json.loads(report.read_text())
    assert content["holds"]
    assert content["first_failure"] is None
    assert content["facts"]["export"] > 0


def test_verify_names_what_was_tampered_with_and_exits_with_1(place, export, tmp_path):
    path = export / "trail.json"
    before = path.read_text()
    path.write_text(before.replace('"held": "6', '"held": "5', 1))
    report = tmp_path / "report.json"
    try:
        refused = opfl_trail("verify", *place, "--export", export, "--json", report)
    finally:
        path.write_text(before)
    assert refused.returncode == 1
    assert "does not hold: export: event" in refused.stdout
    assert "AuditHeld" in refused.stdout
    assert json.loads(report.read_text())["first_failure"]["check"] == "export"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--job": 77}, "job 77 is not in the contract"),
        ({"--deployment": "nowhere.json"}, "nowhere.json does not exist"),
        ({"--rpc-url": "http://127.0.0.1:1"}, "127.0.0.1:1 does not answer"),
        ({"--export": "."}, "trail.json does not exist"),
    ],
)
def test_wrong_arguments_are_named(place, change, message):
    options = {**dict(zip(place[::2], place[1::2], strict=True)), **change}
    refused = opfl_trail("verify", *[part for pair in options.items() for part in pair])
    assert refused.returncode == 1
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr
