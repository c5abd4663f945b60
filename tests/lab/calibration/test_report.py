"""Reports on held-out steps, and the figures of the bench."""

from __future__ import annotations

from pathlib import Path

import pytest
from constructed import GUIDED, PAPER, observation

from opfl_chain.bench.calibrate import CalibrateBench, groups
from opfl_chain.lab.calibration.report import CalibrationReport, Trial, draw
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.registry import rule_for

NEAR = observation(GUIDED, (1000, 0))
FAR = observation(GUIDED, (999, 0), (1, 1 << 40))
OFF_ADVICE = observation(GUIDED, (999, 0), (1, 1 << 40), wrong_side=5000)
BOUNDARY = rule_for(GUIDED).calibrate(GUIDED, [NEAR], alpha=2)


def report(held_out: Trial) -> CalibrationReport:
    return CalibrationReport(GUIDED, "mnist", BOUNDARY, 2.0, (0, 1, 2), Trial(3), held_out)


def test_rejections_are_counted_by_cause() -> None:
    steps = [(10, NEAR), (20, FAR), (30, OFF_ADVICE), (40, NEAR)]
    trial = Trial.of(BOUNDARY, steps)
    assert trial.steps == 4
    assert trial.rejections == {20: ["infinity"], 30: ["infinity", "advice"]}
    assert trial.rejected_by_cause == {"advice": 1, "infinity": 2}


@pytest.mark.parametrize("steps", [1, 8, 100, 2000])
def test_none_rejected_of_n_is_below_the_95_percent_bound(steps: int) -> None:
    assert Trial(steps).upper95 == pytest.approx(1 - 0.05 ** (1 / steps), rel=1e-9)


def test_some_rejected_of_n_have_the_bound_of_the_tables() -> None:
    # Clopper and Pearson, one-sided.
    for rejected, steps, bound in ((1, 10, 0.3942), (2, 100, 0.0616), (3, 3, 1.0)):
        trial = Trial(steps, {t: ["advice"] for t in range(rejected)})
        assert trial.upper95 == pytest.approx(bound, abs=1e-4)


def test_nothing_is_claimed_where_nothing_was_held_out() -> None:
    assert Trial(0).upper95 is None
    assert "No steps were held out" in report(Trial(0)).markdown


def test_the_page_says_what_the_fields_say() -> None:
    found = report(Trial(100, {1234: ["infinity", "advice"]}))
    assert found.fields["held_out"] == {
        "honest_steps": 100,
        "rejected": 1,
        "rejected_by_cause": {"advice": 1, "infinity": 1},
        "frr": 0.01,
        "frr_upper95": pytest.approx(0.0466, abs=1e-4),
        "rejected_steps": [{"t": 1234, "causes": ["infinity", "advice"]}],
    }
    for text in (
        "1 of 100 held-out honest steps rejected: with 95 % confidence, at most 4.66%",
        "| calibrated on | 3 steps, from 0 to 2 |",
        "| infinity | 1 |",
        "Rejected: 1,234.",
        "0x" + BOUNDARY.hash.hex(),
    ):
        assert text in found.markdown


@pytest.mark.parametrize(
    ("policy", "boundary"),
    [
        (GUIDED, BOUNDARY),
        (PAPER, rule_for(PAPER).calibrate(PAPER, [observation(PAPER, (1000, 0))], 3.0)),
    ],
)
def test_a_plot_is_a_png_even_of_steps_without_discrepancy(
    policy: Policy, boundary: Boundary, tmp_path: Path
) -> None:
    file = tmp_path / "boundary.png"
    draw(boundary, [7], [observation(policy, (1000, 0))], file)
    assert file.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [file]


def test_the_bench_compares_a_hundred_steps_with_naive_replays() -> None:
    report = CalibrateBench("lenet-61706", 10, (1.0, 1.0), (0.5, 0.8, 0.9)).report
    assert report["replay_seconds"] == 0.2
    assert report["steps_per_minute"] == 300
    assert report["naive_replay_seconds"] == 0.8
    assert report["hundred_steps_in_naive_replays"] == pytest.approx(25)
    assert [list(group) for group in groups(range(5), 2)] == [[0, 1], [2, 3], [4]]
