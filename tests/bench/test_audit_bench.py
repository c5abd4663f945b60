"""The benchmark of audits, on its smallest size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from opfl_chain.bench.audit import KINDS, kind_ratios, kinds_markdown
from opfl_chain.cli import app

FIELDS = {
    "seconds",
    "cpu_seconds_members",
    "cpu_seconds_client",
    "megabytes_members",
    "messages",
    "rounds",
    "megabytes_client",
    "batches",
}


def run(tmp_path: Path, *options: str) -> dict:
    path = tmp_path / "report.json"
    arguments = ["bench", "audit", "--repeats", "1", "--no-naive", "--json", str(path), *options]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    report: dict = json.loads(path.read_text())
    return report


GUIDED_MESSAGES = 976
"""Messages of a guided audit of lenet-61706, as docs/MPC.md has them measured."""


def test_a_proved_audit_takes_an_echoed_step_and_a_bound_one(tmp_path: Path) -> None:
    report = run(tmp_path, "--kinds", "proved", "--batches", "1,3")
    (proved,) = report["kinds"].values()
    assert proved.keys() == FIELDS
    assert (proved["messages"], proved["rounds"]) == (18, 3)
    assert 50 * proved["messages"] <= GUIDED_MESSAGES
    assert proved["megabytes_members"] < 0.008
    assert proved["cpu_seconds_members"] > 0 < proved["cpu_seconds_client"]
    # The client's gradient in words for two members, and its proof.
    assert proved["megabytes_client"] > 2 * 8 * 61_706 / 1e6
    one, three = (proved["batches"][size] for size in ("1", "3"))
    assert three["messages"] == one["messages"] == 18
    # Audits of a round share the header and the signature of each message.
    assert three["megabytes_members"] < 3 * one["megabytes_members"]


def test_kinds_are_measured_in_one_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- begin kinds of lenet-61706, batch 2 -->\n<!-- end kinds of lenet-61706, batch 2 -->"
    )
    options = ("--kinds", "guided,proved", "--batches", "", "--batch-size", "2")
    report = run(tmp_path, *options, "--page", str(page))
    assert list(report["kinds"]) == ["guided", "proved"]
    assert "ours_seconds" not in report
    ratios = kind_ratios(report)
    assert ratios["bytes"] > 500
    assert ratios["messages"] > 40  # a proved audit has 18: two steps and the echo of the first
    assert kinds_markdown(report) in page.read_text()


def test_an_unknown_kind_is_refused() -> None:
    result = CliRunner().invoke(app, ["bench", "audit", "--kinds", "checked"])
    assert result.exit_code == 2
    assert all(kind in result.output for kind in KINDS)


@pytest.mark.parametrize("kinds", [["plain"], ["proved"]])
def test_ratios_need_both_kinds(kinds: list[str]) -> None:
    assert kind_ratios({"kinds": {kind: {} for kind in kinds}}) == {}
