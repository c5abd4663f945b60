"""Result folders: resumable, with one set of settings, and clear errors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from opfl_chain.lab.boundary.recording import PLANS as OF_BOUNDARY
from opfl_chain.lab.errors import (
    ResultDamaged,
    ResultMissing,
    ResultsOfAnotherRun,
    ResultsOfUnknownRun,
)
from opfl_chain.paper.lab import NAMES
from opfl_chain.paper.results import CLAIM, PLANS, LabSettings, Results
from opfl_chain.rules.registry import BUILTIN_RULES


def test_cells_are_computed_once_even_after_an_interruption(tmp_path: Path) -> None:
    computed = []

    def compute() -> int:
        computed.append(1)
        return len(computed)

    cells = Results(tmp_path).cells("adaptive-pgd")
    assert cells.of("first", compute) == 1

    def interrupted() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cells.of("second", interrupted)
    again = Results(tmp_path).cells("adaptive-pgd")
    assert again.of("first", compute) == 1
    assert "second" not in again
    assert again.of("second", compute) == 2


def test_a_finished_result_replaces_its_cells(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.cells("drift").of("none", lambda: 1)
    results.finish("drift", {"name": "drift", "rows": []})
    assert [path.name for path in tmp_path.iterdir()] == ["drift.json"]
    assert results.report("drift")["rows"] == []


def test_an_empty_folder_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(ResultMissing, match=f"opfl evaluate cost --out {tmp_path}"):
        Results(tmp_path).report("cost")


def test_settings_are_not_mixed(tmp_path: Path) -> None:
    Results(tmp_path).claim(LabSettings(), NAMES)
    Results(tmp_path).claim(LabSettings(), NAMES)
    with pytest.raises(ResultsOfAnotherRun, match="its quick is False, here it is True"):
        Results(tmp_path).claim(LabSettings.quickly(), NAMES)
    with pytest.raises(ResultsOfAnotherRun, match="its instances is 200, here it is 3"):
        Results(tmp_path).claim(replace(LabSettings(), instances=3), NAMES)


def test_results_without_their_settings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "drift.json").write_text("{}")
    with pytest.raises(ResultsOfUnknownRun, match=r"has drift\.json but no lab\.json"):
        Results(tmp_path).claim(LabSettings(), NAMES)


@pytest.mark.parametrize("text", ["", "[1]", '{"name": "cost"}', '{"rows"'])
def test_damaged_results_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "drift.json").write_text(text)
    with pytest.raises(ResultDamaged, match="Delete it to have it computed again"):
        Results(tmp_path).report("drift")


def test_the_claim_holds_the_settings(tmp_path: Path) -> None:
    Results(tmp_path).claim(LabSettings.quickly(), NAMES)
    kept = json.loads((tmp_path / CLAIM).read_text())
    assert kept["quick"] is True
    assert kept["seed"] == 42


def test_plans_extend_those_of_the_boundary() -> None:
    for name, plan in PLANS.items():
        assert set(plan.kept) >= set(OF_BOUNDARY[name].kept)
        assert all(plan.replayed(rule) == plan.kept for rule in BUILTIN_RULES)
