"""`opfl calibrate` for proved steps: without MPC, for batches, by kind of audits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from opfl_chain.cli import app
from opfl_chain.lab.calibration.reference import reference_boundary
from opfl_chain.lab.calibration.run import policy_for, rule_chosen
from opfl_chain.lab.errors import PlanInvalid
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.registry import boundary_from_json, rule_named, rule_of


def test_command_calibrates_batches_of_proved_steps(tmp_path: Path) -> None:
    given = ["--kind", "proved", "--batch", "2", "--steps", "3", "--held-out", "1"]
    out = ["--dataset", "synthetic", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, ["calibrate", *given, *out])
    assert result.exit_code == 0, result.output
    policy = Policy.from_json((tmp_path / "policy.json").read_bytes())
    assert policy == default_policy("lenet-61706", rule="proved", batch_size=2)
    boundary = boundary_from_json((tmp_path / "boundary.json").read_bytes())
    assert rule_of(boundary).tolerance(boundary) is not None
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["held_out"]["rejected"] == 0
    used = report["largest_use_of_bounds"]
    assert used.keys() == {"gradient", "residuals", "words"}
    assert 0 < max(used.values()) < 0.5
    assert "largest use of bound: words" in (tmp_path / "report.md").read_text()
    assert (tmp_path / "boundary.png").read_bytes().startswith(b"\x89PNG")


def test_a_kind_and_a_rule_of_another_are_refused() -> None:
    assert rule_chosen(None, "guided") is rule_named("guided")
    assert rule_chosen("paper", "plain") is rule_named("paper")
    assert rule_chosen(None, None) is None
    with pytest.raises(PlanInvalid, match="rule paper is for plain audits, not for proved ones"):
        rule_chosen("paper", "proved")


def test_a_policy_of_other_batches_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    file.write_bytes(default_policy("lenet-61706", rule="proved").canonical_json)
    with pytest.raises(PlanInvalid, match="batch size 1, not for size 8"):
        policy_for(None, None, file, 8)


@pytest.mark.parametrize("model", ["lenet-61706", "lenet-431080"])
def test_the_package_has_a_boundary_for_proved_batches(model: str) -> None:
    boundary = reference_boundary(default_policy(model, rule="proved", batch_size=8))
    tolerance = rule_of(boundary).tolerance(boundary)
    assert tolerance is not None
    assert tolerance.relative / 2**40 < 1e-5
