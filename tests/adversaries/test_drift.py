"""Drift submissions are inside the boundary, and slightly larger ones are not."""

from __future__ import annotations

import numpy as np
import pytest
from attack_support import POLICY, attacked, guided

from opfl_chain.adversaries.gradients.adaptive import Drift
from opfl_chain.adversaries.gradients.attack import AttackState
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.policy import PAPER_GRID
from opfl_chain.rules.evidence import headroom_of
from opfl_chain.rules.guided import check_guided_replay
from opfl_chain.rules.paper import PaperBoundary, check_replay
from opfl_chain.rules.registry import rule_named, rule_of

PLAIN = default_policy(LENET_61706, rule=rule_named("paper"))
SIZE = LENET_61706.layout.size


def paper() -> PaperBoundary:
    count = len(PAPER_GRID)
    bounds = np.linspace(1e-7, 1e-5, count)
    return PaperBoundary.of_bounds(PLAIN, SIZE, bounds, np.linspace(1e-3, 0.9, count), 1e-6, 1e-3)


def words(policy, gradient):  # type: ignore[no-untyped-def]
    return policy.fixed_point.encode_array("gradient", gradient)


@pytest.mark.parametrize(("part", "passes"), [(0.99, True), (1.05, False)])
def test_guided_move_is_what_the_rule_allows(part: float, passes: bool) -> None:
    step, boundary = attacked(1), guided()
    headroom = headroom_of(POLICY, step.logits, step.labels)
    wanted = np.random.default_rng(0).random(SIZE)
    allowed = rule_of(boundary).allowed_moves(
        boundary, POLICY, step.gradient, wanted, headroom, part
    )
    moved = step.gradient - np.sign(step.gradient) * allowed
    replay = words(POLICY, step.gradient)
    report = check_guided_replay(boundary, words(POLICY, moved), replay, headroom)
    assert report.passed == passes


@pytest.mark.parametrize(("part", "passes"), [(0.99, True), (1.1, False)])
def test_paper_move_is_what_the_rule_allows(part: float, passes: bool) -> None:
    step, boundary = attacked(1), paper()
    allowed = rule_of(boundary).allowed_moves(
        boundary, PLAIN, step.gradient, np.abs(step.gradient.astype(float)), None, part
    )
    moved = step.gradient - np.sign(step.gradient) * allowed
    report = check_replay(boundary, words(PLAIN, moved), words(PLAIN, step.gradient))
    assert report.passed == passes


def test_coordinates_that_are_wanted_most_get_the_widest_bounds() -> None:
    step = attacked(1)
    flat = np.full(SIZE, 1e-3, np.float32)
    allowed = rule_named("guided").allowed_moves(
        guided(), POLICY, flat, np.arange(SIZE, dtype=float), 0
    )
    assert (np.diff(allowed) >= 0).all()
    unit = 2.0 ** (int(2e-3 * POLICY.fixed_point.words_per_unit).bit_length() - 26)
    widest = (2e-3 / 8192 + 1400 * unit * POLICY.fixed_point.quantum) / (1 + 1 / 8192)
    assert allowed[-1] == pytest.approx(widest, rel=1e-6)
    assert step.gradient.size == SIZE


def test_drift_goes_the_same_way_in_every_round() -> None:
    attack, boundary = Drift(0.75), guided()
    signs = []
    for t in (1, 2):
        step = attacked(t, boundary, seed=7)
        moved = attack.submit(step, AttackState()).astype(np.float64) - step.gradient
        headroom = headroom_of(POLICY, step.logits, step.labels)
        replay = words(POLICY, step.gradient)
        submitted = words(POLICY, attack.submit(step, AttackState()))
        assert check_guided_replay(boundary, submitted, replay, headroom).passed
        signs.append(np.sign(moved))
    both = (signs[0] != 0) & (signs[1] != 0)
    assert both.mean() > 0.9
    np.testing.assert_array_equal(signs[0][both], signs[1][both])


@pytest.mark.parametrize("policy", [POLICY, PLAIN])
def test_nothing_that_is_accepted_is_beyond_the_reach(policy) -> None:  # type: ignore[no-untyped-def]
    step = attacked(1)
    boundary = guided() if policy is POLICY else paper()
    headroom = headroom_of(policy, step.logits, step.labels)
    real = step.gradient.astype(np.float64)
    farthest = rule_of(boundary).largest_distance(boundary, policy, real, headroom)
    most = rule_of(boundary).allowed_moves(boundary, policy, step.gradient, np.abs(real), headroom)
    assert 0.3 * farthest < np.linalg.norm(most) < farthest
