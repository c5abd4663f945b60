"""Rejection counts agree with the rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from evaluation_support import GUIDED, PAPER, RULES, RUN, made_up_observation, made_up_records

from opfl_chain.lab.boundary.evaluated import Evaluated, Extent, by_stage
from opfl_chain.lab.boundary.records import RuleRecords, RunName
from opfl_chain.lab.calibration.steps import StepStore
from opfl_chain.lab.errors import RecordsInconsistent, RecordsMissing, TooFewSteps
from opfl_chain.lab.statistics import Rate, upper_bound
from opfl_chain.rules.evidence import Replayed
from opfl_chain.rules.rule import AnyRule


@pytest.mark.parametrize(
    ("rejected", "steps", "bound"),
    [(0, 100, 0.029513), (1, 20, 0.216106), (5, 100, 0.102253), (0, 2000, 0.001497), (7, 7, 1.0)],
)
def test_upper_bound_is_that_of_the_tables(rejected: int, steps: int, bound: float) -> None:
    assert upper_bound(rejected, steps) == pytest.approx(bound, abs=1e-6)


@pytest.mark.parametrize(("rejected", "steps"), [(0, 0), (3, 2), (-1, 2)])
def test_upper_bound_refuses_what_is_no_count(rejected: int, steps: int) -> None:
    with pytest.raises(ValueError, match=f"{rejected} of {steps}"):
        upper_bound(rejected, steps)


@pytest.mark.parametrize("rule", RULES)
def test_a_profile_is_rejected_for_the_causes_of_its_replay(rule: AnyRule) -> None:
    calm = made_up_observation(rule, 1, off=2)
    seen = set()
    for alpha in (0.5, 1.0, 1.5, 4.0):
        boundary = rule.calibrate(calm.policy, [calm], alpha)
        for off in (1, 2, 3, 40, 4000):
            observation = made_up_observation(rule, 2, off)
            causes = rule.causes(boundary, observation)
            assert rule.profile(observation).causes(boundary) == causes
            seen.add(tuple(causes))
    assert () in seen
    assert len(seen) > 1


def test_advice_alone_is_a_cause() -> None:
    honest = made_up_observation(GUIDED, 1)
    boundary = GUIDED.calibrate(honest.policy, [honest], GUIDED.alpha)
    for field in ("wrong_side", "over_ceiling"):
        told = replace(honest, replay=replace(honest.replay, **{field: 257}))
        assert GUIDED.profile(told).causes(boundary) == GUIDED.causes(boundary, told) == ["advice"]


@pytest.mark.parametrize("rule", RULES)
def test_the_widest_of_boundaries_is_that_of_all_steps(rule: AnyRule) -> None:
    observations = [made_up_observation(rule, seed, off=3 + 40 * seed) for seed in range(4)]
    policy, calibrate = observations[0].policy, rule.calibrate
    alone = [calibrate(policy, [each], 3.0) for each in observations]
    assert rule.merged(alone) == calibrate(policy, observations, 3.0)


def test_a_step_counts_once_however_many_causes_reject_it() -> None:
    calm, wild = (made_up_observation(PAPER, 1, off) for off in (1, 4000))
    boundary = PAPER.calibrate(calm.policy, [calm], PAPER.alpha)
    rate = Rate.of(boundary, [PAPER.profile(calm), PAPER.profile(wild)])
    assert (rate.honest_steps, rate.rejected) == (2, 1)
    assert rate.rejected_by_cause == {"absolute": 1, "infinity": 1, "relative": 1}


def test_stages_are_thirds_of_the_run() -> None:
    stages = by_stage([0, 5, 29, 30, 59, 60, 89], 90)
    assert list(stages.values()) == [[0, 5, 29], [30, 59], [60, 89]]


def test_numbers_of_calibration_steps_are_judged_on_the_same_steps(tmp_path: Path) -> None:
    evaluated = Evaluated(made_up_records(tmp_path, 56), Extent(calibration_steps=4))
    rows = evaluated.by_calibration_steps()
    assert [row["calibration_steps"] for row in rows] == [20, 50]
    assert {row["honest_steps"] for row in rows} == {6}


def test_too_few_steps_are_refused(tmp_path: Path) -> None:
    records = made_up_records(tmp_path, 3)
    with pytest.raises(TooFewSteps, match="has 3 replays by rule guided, but 3 for calibration"):
        Evaluated(records, Extent(calibration_steps=3))


def test_missing_records_are_named(tmp_path: Path) -> None:
    with pytest.raises(RecordsMissing, match="no recorded steps"):
        RuleRecords.open(tmp_path, RUN, GUIDED)
    made_up_records(tmp_path, 2)
    with pytest.raises(RecordsMissing, match="no replays by rule paper"):
        RuleRecords.open(tmp_path, RUN, PAPER)


def test_a_replay_without_its_step_is_refused(tmp_path: Path) -> None:
    records = made_up_records(tmp_path, 2)
    records.store.save_replay("guided", 7, records.store.load_replay("guided", 0))
    with pytest.raises(RecordsInconsistent, match="step 7 is replayed, but not recorded"):
        RuleRecords.open(tmp_path, RUN, GUIDED)


@pytest.mark.parametrize(
    ("replayed", "reason"),
    [
        (Replayed(np.ones(5, np.int64)), "replay of step 0: size 5, the policy has 61,706"),
        (Replayed(np.ones(61_706, np.int64), lift=3), "with lift 3, the policy gives 0"),
        (Replayed(np.ones(61_706, np.int64) << 40), "it was made with another loss scale"),
    ],
)
def test_replays_of_another_policy_are_refused(
    tmp_path: Path, replayed: Replayed, reason: str
) -> None:
    made_up_records(tmp_path, 2)
    StepStore(tmp_path / str(RUN)).save_replay("guided", 0, replayed)
    with pytest.raises(RecordsInconsistent, match=reason):
        RuleRecords.open(tmp_path, RUN, GUIDED)


def test_names_of_runs_are_read_and_refused() -> None:
    run = RunName.parse("lenet-431080-fashion-mnist")
    assert (run.model.name, run.dataset) == ("lenet-431080", "fashion-mnist")
    with pytest.raises(Exception, match="'lenet-1-mnist' is not the name of a run"):
        RunName.parse("lenet-1-mnist")
