"""The adaptive attack run by a client."""

from __future__ import annotations

import numpy as np
import pytest
from attack_support import POLICY, attacked, gradient_of, guided, relative

from opfl_chain.adversaries.gradients.attack import AttackedStep, AttackState, Vector
from opfl_chain.adversaries.gradients.registry import attack_named
from opfl_chain.rules.evidence import headroom_of
from opfl_chain.rules.guided import check_guided_replay


def submitted(name: str, step: AttackedStep) -> Vector:
    return attack_named(name).submit(step, AttackState())


def accepted(step: AttackedStep, gradient: Vector) -> bool:
    """Check a gradient against a replay that equals the honest gradient to the bit."""
    ours, theirs = (
        POLICY.fixed_point.encode_array("gradient", each) for each in (gradient, step.gradient)
    )
    headroom = headroom_of(POLICY, step.logits, step.labels)
    return check_guided_replay(guided(), ours, theirs, headroom).passed


@pytest.mark.parametrize(("name", "beta"), [("adaptive:0.5", 0.5), ("tail-1", 1), ("tail-10:2", 2)])
def test_adaptive_attack_moves_by_beta_and_is_rejected(name: str, beta: float) -> None:
    step = attacked(1, guided())
    found = submitted(name, step)
    assert relative(found, step.gradient) == pytest.approx(beta, rel=1e-4)
    assert not accepted(step, found)


@pytest.mark.parametrize(("name", "part"), [("tail-1", 0.01), ("tail-10", 0.1)])
def test_tails_leave_the_other_coordinates_alone(name: str, part: float) -> None:
    step = attacked(1, guided())
    moved = submitted(name, step) != step.gradient
    assert 0.5 * part < moved.mean() <= part


def test_within_the_boundary_it_is_accepted_and_does_harm() -> None:
    step = attacked(1, guided())
    found = submitted("adaptive:0.00001", step)
    assert accepted(step, found)
    rate = np.float64(POLICY.optimizer.learning_rate)
    slope = gradient_of(step.examples, step.labels).astype(np.float64)
    moved = found.astype(np.float64) - step.gradient
    assert -rate * (slope @ moved) > 0  # the loss falls less than honestly


def test_a_repeated_round_submits_the_same() -> None:
    step = attacked(2, guided())
    np.testing.assert_array_equal(submitted("adaptive", step), submitted("adaptive", step))
