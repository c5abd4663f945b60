"""The lab evaluates and calibrates a rule that implements no more than it must."""

from __future__ import annotations

from pathlib import Path

import pytest
from evaluation_support import made_up_records
from linf_rule import RULE, install

from opfl_chain.lab.boundary.evaluated import Evaluated, Extent
from opfl_chain.lab.boundary.mask_attack import mask_attack_rows
from opfl_chain.lab.boundary.plots import draw_excess, draw_profiles
from opfl_chain.lab.boundary.report import settings
from opfl_chain.lab.calibration.report import draw
from opfl_chain.lab.calibration.run import policy_for


@pytest.fixture
def evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Evaluated:
    install(monkeypatch)
    return Evaluated(made_up_records(tmp_path, 6, RULE), Extent(calibration_steps=3))


def test_its_boundary_is_calibrated_on_all_steps_and_judges_the_others(
    evaluated: Evaluated,
) -> None:
    records = evaluated.records
    observations = [records.observation(t) for t in evaluated.calibration]
    assert evaluated.boundary == RULE.calibrate(records.policy, observations, RULE.alpha)
    row = evaluated.row()
    assert (row["rule"], row["alpha"], row["honest_steps"]) == ("linf", 2.0, 3)
    assert (row["rejected"], row["floor_steps"]) == (0, 3)
    assert row["floor_single_100"] is not None


def test_tables_of_what_it_does_not_offer_are_empty(evaluated: Evaluated) -> None:
    assert evaluated.trade_off() == []
    assert mask_attack_rows(evaluated) == []
    alpha = {"paper": 3.0, "guided": 8.0, "proved": 3.5, "linf": 2.0}
    assert settings([evaluated])["alpha"] == alpha


def test_its_steps_are_drawn(evaluated: Evaluated, tmp_path: Path) -> None:
    draw_profiles(evaluated, tmp_path / "profiles.png")
    draw_excess([evaluated], tmp_path / "excess.png")
    steps = list(evaluated.calibration)
    observations = [evaluated.records.observation(t) for t in steps]
    draw(evaluated.boundary, steps, observations, tmp_path / "boundary.png")
    assert {path.name for path in tmp_path.glob("*.png")} == {"profiles.png", "boundary.png"}


def test_its_default_policy_has_the_replay_that_it_judges() -> None:
    policy, rule = policy_for(None, RULE, None)
    assert (policy.replay.kind, policy.quantile_grid, rule) == ("plain", RULE.grid, RULE)
