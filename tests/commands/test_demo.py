"""The demo on a real Anvil, as a user runs it."""

import json
import subprocess
import sys

import pytest

ETHER = 10**18


def opfl(*arguments):
    command = [sys.executable, "-m", "opfl_chain.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "report.json"
    finished = opfl("demo", "--json", path)
    assert finished.returncode == 0, finished.stderr
    return json.loads(path.read_text())


def test_demo_slashes_the_cheat_and_nobody_else(report):
    assert (report["honest_slashed"], report["cheats_audited"], report["cheats_slashed"]) == (
        0,
        1,
        1,
    )
    cheat = report["clients"][-1]
    assert cheat["cheat"]
    assert (cheat["deposit_before"], cheat["deposit_after"]) == (10 * ETHER, 0)
    for client in report["clients"][:-1]:
        assert client["deposit_after"] == client["deposit_before"] == 10 * ETHER


def test_demo_conserves_money(report):
    earned = sum(member["earned"] for member in report["members"])
    assert report["burned_wei"] + report["treasury_wei"] + earned == 10 * ETHER
    stakes = sum(member["deposit_after"] for member in report["members"])
    assert report["held_wei"] == report["burned_wei"] + stakes
    assert report["withdrawn_wei"] == 4 * 10 * ETHER


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--clients", "1"], "--clients"),
        (["demo", "--audit-rate", "0"], "--audit-rate"),
        (["demo", "--chain", "geth"], "--chain"),
        (["dmo"], "No such command"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    refused = opfl(*arguments)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr
