"""The same step in other environments and with other masks."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from opfl_chain.lab.boundary.environments import RECORDED, environments_of
from opfl_chain.lab.boundary.executions import BF16_BITS, TF32_BITS, of_few_bits, rounded
from opfl_chain.lab.boundary.mask_attack import MaskAttacker
from opfl_chain.lab.calibration.steps import HonestStep, honest_run
from opfl_chain.learning.data.datasets import synthetic_dataset
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.rules.registry import rule_named

POLICY = default_policy(LENET_61706)


@pytest.fixture(scope="module")
def step() -> HonestStep:
    run = honest_run(POLICY, synthetic_dataset().train, 6, {5})
    return next(kept for _, _, kept in run if kept)


def apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def test_bf16_rounds_as_torch_does() -> None:
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    expected = torch.tensor(values).bfloat16().float().numpy()
    np.testing.assert_array_equal(rounded(values, BF16_BITS), expected)


def test_tf32_keeps_ten_bits_and_rounds_ties_to_even() -> None:
    unit = 2.0**-TF32_BITS
    values = np.array([1 + unit, 1 + unit / 2, 1 + 3 * unit / 2, -1 - 0.6 * unit], np.float32)
    expected = [1 + unit, 1, 1 + 2 * unit, -1 - unit]
    np.testing.assert_array_equal(rounded(values, TF32_BITS), expected)


def test_factors_are_rounded_in_the_backward_pass_too() -> None:
    random = np.random.default_rng(0)
    left, right, pulled = (
        random.standard_normal(shape).astype(np.float32) for shape in ((3, 4), (4, 2), (3, 2))
    )
    _, pull_back = jax.vjp(of_few_bits(jnp.matmul, BF16_BITS), left, right)
    by_left, by_right = pull_back(pulled)
    of = {
        name: rounded(each, BF16_BITS)
        for name, each in zip("lrp", (left, right, pulled), strict=True)
    }
    np.testing.assert_allclose(by_left, of["p"] @ of["r"].T, rtol=1e-6)
    np.testing.assert_allclose(by_right, of["l"].T @ of["p"], rtol=1e-6)


def test_environments_are_as_far_from_the_record_as_their_numbers_are(step: HonestStep) -> None:
    before = torch.backends.mkldnn.enabled, torch.get_num_threads()
    found = {name: run(step) for name, run in environments_of(POLICY).items()}
    assert (torch.backends.mkldnn.enabled, torch.get_num_threads()) == before
    np.testing.assert_array_equal(found[RECORDED].gradient, step.gradient)
    np.testing.assert_array_equal(found[RECORDED].pre_activations, step.pre_activations)
    distances = {name: apart(each.gradient, step.gradient) for name, each in found.items()}
    for name in found:
        if "stand-in" not in name:
            assert distances[name] < 2e-6, name
    assert 1e-5 < distances["TF32-like products (stand-in)"] < 1e-2
    assert 1e-4 < distances["bf16-like products (stand-in)"] < 1e-1


def test_no_mask_is_free_where_no_value_is_near_zero(step: HonestStep) -> None:
    attack = MaskAttacker(LENET_61706, 0.0).attack(step)
    assert (attack.free_units, attack.change_chosen) == (0, 0.0)


def test_free_masks_move_the_gradient(step: HonestStep) -> None:
    sizes = np.sort(np.abs(step.pre_activations))
    attack = MaskAttacker(LENET_61706, float(sizes[4])).attack(step)
    assert attack.free_units == 5
    assert 0 < attack.change_all_flipped <= attack.change_chosen < 1


def test_honest_masks_give_the_honest_gradient(step: HonestStep) -> None:
    gradient = MaskAttacker(LENET_61706, 1.0)._gradient(step, np.zeros(0, np.int64))
    assert apart(gradient, step.gradient) < 1e-6


def test_a_model_that_is_certain_has_nothing_to_learn_anywhere(step: HonestStep) -> None:
    last = LENET_61706.layout.slices["fc3.bias"]
    weights = step.weights.copy()
    weights[last][step.labels[0]] += 40
    certain = replace(step, weights=weights)
    for name, run in environments_of(POLICY).items():
        assert not run(certain).gradient.any(), name
    plain = environments_of(default_policy(LENET_61706, rule=rule_named("paper")))[RECORDED]
    assert plain(certain).gradient.any()
