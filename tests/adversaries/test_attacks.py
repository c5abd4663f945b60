"""Each attack submits the gradient of its formula."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from attack_support import POLICY, attacked, gradient_of, relative, weights

from opfl_chain.adversaries.gradients.attack import (
    Attack,
    AttackState,
    BoundaryNeeded,
    ParameterInvalid,
    StateDamaged,
    UnknownAttack,
)
from opfl_chain.adversaries.gradients.registry import attack_named
from opfl_chain.adversaries.gradients.simple import TARGET, TRIGGER_SIDE

EVERY = (
    *("reuse:5", "reverse:0.5", "amplify:10", "free-rider:0.1", "backdoor:10", "label-flip"),
    *("poison", "adaptive:0.5", "tail-1:2", "tail-10:1", "drift:0.75"),
)
AWARE = ("adaptive", "tail-1", "tail-10", "drift")
"""Attacks that use the boundary."""


@pytest.mark.parametrize("interval", [2, 5, 10])
def test_reuse_computes_once_in_every_interval(interval: int) -> None:
    attack, state = attack_named(f"reuse:{interval}"), AttackState()
    steps = [attacked(t) for t in range(interval + 2)]
    for step in steps:
        fresh = step.t // interval * interval
        np.testing.assert_array_equal(attack.submit(step, state), steps[fresh].gradient)


def test_reuse_without_a_memory_has_to_compute() -> None:
    state = AttackState()
    np.testing.assert_array_equal(
        attack_named("reuse:5").submit(attacked(3), state), attacked(3).gradient
    )
    np.testing.assert_array_equal(
        attack_named("reuse:5").submit(attacked(4), state), attacked(3).gradient
    )


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("reverse:0.5", -0.5),
        ("reverse:1", -1),
        ("reverse:2", -2),
        ("amplify:5", 5),
        ("amplify", 10),
    ],
)
def test_scaled_gradients_are_multiples(name: str, factor: float) -> None:
    step = attacked(1)
    submitted = attack_named(name).submit(step, AttackState())
    np.testing.assert_array_equal(submitted, np.float32(factor) * step.gradient)


def test_label_flip_is_of_the_committed_image_and_the_next_class() -> None:
    step = attacked(2)
    attack = attack_named("label-flip")
    submitted = attack.submit(step, AttackState())
    expected = gradient_of(step.examples, (step.labels + 1) % 10)
    np.testing.assert_array_equal(submitted, expected)
    assert relative(submitted, step.gradient) > 0.1
    np.testing.assert_array_equal(attack.training_labels(step.labels, 10), step.labels)


def test_poison_is_in_the_data_and_honest_from_there_on() -> None:
    step, attack = attacked(2), attack_named("poison")
    np.testing.assert_array_equal(attack.submit(step, AttackState()), step.gradient)
    labels = np.array([0, 4, 9])
    np.testing.assert_array_equal(attack.training_labels(labels, 10), [1, 5, 0])
    np.testing.assert_array_equal(labels, [0, 4, 9])


def test_free_rider_guesses_the_last_change_of_the_model() -> None:
    state, attack = AttackState(), attack_named("free-rider:0.25")
    rate = POLICY.optimizer.learning_rate
    first = attack.submit(attacked(0), state)
    assert np.linalg.norm(first) == pytest.approx(0.25, rel=1e-5)
    change = np.linspace(-1, 1, weights().size).astype(np.float32)
    moved = replace(attacked(1), weights=weights() - np.float32(rate) * change)
    noise = attack.submit(moved, state) - change
    assert np.linalg.norm(noise) == pytest.approx(0.25 * np.linalg.norm(change), rel=1e-2)
    assert abs(noise @ change) < 0.02 * np.linalg.norm(noise) * np.linalg.norm(change)


def test_backdoor_adds_the_triggers_gradient() -> None:
    step = attacked(3)
    marked = step.examples.copy()
    marked[:, -TRIGGER_SIDE:, -TRIGGER_SIDE:] = np.float32((1 - 0.1307) / 0.3081)
    hidden = gradient_of(marked, np.array([TARGET]))
    submitted = attack_named("backdoor:4").submit(step, AttackState())
    np.testing.assert_array_equal(submitted, step.gradient + np.float32(4) * hidden)
    assert step.examples.max() <= marked.max()


@pytest.mark.parametrize("name", AWARE)
def test_attack_on_the_boundary_needs_one(name: str) -> None:
    with pytest.raises(BoundaryNeeded, match=rf"{name}:.*was given none"):
        attack_named(name).submit(attacked(0), AttackState())


@pytest.mark.parametrize("name", EVERY)
def test_names_are_read_as_they_are_written(name: str) -> None:
    assert attack_named(name).name == name


@pytest.mark.parametrize("name", [name for name in EVERY if name.split(":")[0] not in AWARE])
def test_a_repeated_round_submits_the_same(name: str) -> None:
    attack: Attack = attack_named(name)
    state = AttackState()
    for t in range(3):
        attack.submit(attacked(t), state)
    kept = state.to_bytes()
    once = attack.submit(attacked(3), state)
    np.testing.assert_array_equal(attack.submit(attacked(3), state), once)
    np.testing.assert_array_equal(attack.submit(attacked(3), AttackState.from_bytes(kept)), once)


def test_unknown_names_list_what_there_is() -> None:
    with pytest.raises(
        UnknownAttack, match=r"unknown attack 'steal'.*reuse\[:K=5\].*label-flip, poison"
    ):
        attack_named("steal")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("reuse:1", "K is 1, it must be a whole number above 1"),
        ("reuse:2.5", "K is 2.5, it must be a whole number"),
        ("reverse:x", "'x' is not a number, it must be a number above 0"),
        ("amplify:nan", "G is nan"),
        ("amplify:inf", "G is inf"),
        ("drift:1.5", "P is 1.5, it must be a number above 0 and at most 1"),
        ("label-flip:3", "label-flip takes no number"),
    ],
)
def test_parameters_out_of_range_are_refused(name: str, reason: str) -> None:
    with pytest.raises(ParameterInvalid, match=reason):
        attack_named(name)


def test_memory_keeps_the_latest_rounds_only() -> None:
    state = AttackState()
    for t in (1, 5, 3):
        state.remember("gradient", t, np.full(2, t, np.float32))
    found = state.latest("gradient", 5)
    assert found is not None
    assert found[0] == 3
    assert state.latest("gradient", 3) is None
    assert state.latest("weights", 9) is None


@pytest.mark.parametrize("data", [b"", b"no archive", AttackState().to_bytes()[:-4]])
def test_a_damaged_memory_is_named(data: bytes) -> None:
    with pytest.raises(StateDamaged, match="restart the attack"):
        AttackState.from_bytes(data)
