"""Choice of steps to calibrate on and to hold out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opfl_chain.lab.calibration.run import CalibrationPlan, evenly
from opfl_chain.lab.errors import PlanInvalid


def test_first_steps_and_others_spread_over_the_rest() -> None:
    plan = CalibrationPlan.of(4, held_out=3, training_steps=105)
    assert plan.calibration == (0, 1, 2, 3)
    assert plan.held_out == (4, 54, 104)
    assert plan.kept == [0, 1, 2, 3, 4, 54, 104]


def test_steps_spread_over_the_run() -> None:
    assert CalibrationPlan.of(5, training_steps=101, spread=True).calibration == (
        0,
        25,
        50,
        75,
        100,
    )


def test_the_run_is_as_short_as_can_be() -> None:
    assert CalibrationPlan.of(3, held_out=2).kept == [0, 1, 2, 3, 4]


@given(
    steps=st.integers(1, 50),
    held_out=st.integers(0, 50),
    more=st.integers(0, 200),
    spread=st.booleans(),
)
def test_no_step_is_both(steps: int, held_out: int, more: int, spread: bool) -> None:
    length = steps + held_out + more
    plan = CalibrationPlan.of(steps, held_out, length, spread)
    assert (len(plan.calibration), len(plan.held_out)) == (steps, held_out)
    assert len(set(plan.kept)) == steps + held_out
    assert max(plan.kept) < length


def test_evenly_takes_both_ends() -> None:
    assert evenly(range(10, 20), 2) == [10, 19]
    assert evenly(range(10, 20), 1) == [10]
    assert evenly([], 0) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "--steps is 0, a boundary needs at least 1"),
        ((3, -1), "--held-out is -1"),
        ((100, 20, 110), "--training-steps is 110, which is less than the 100 steps"),
    ],
)
def test_impossible_plans_are_refused(arguments: tuple[int, ...], message: str) -> None:
    with pytest.raises(PlanInvalid, match=message):
        CalibrationPlan.of(*arguments)
