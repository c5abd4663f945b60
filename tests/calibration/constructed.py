"""Gradients and replays of a thousand coordinates, made up so that discrepancies are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opfl_chain.calibration.boundaries import Observation
from opfl_chain.calibration.replayer import Replayed
from opfl_chain.calibration.steps import HonestStep
from opfl_chain.models.lenet import LENET_61706
from opfl_chain.mpc.default_policy import default_policy
from opfl_chain.protocol.policy import Policy

GUIDED = default_policy(LENET_61706)
PAPER = default_policy(LENET_61706, guided=False)


def halves(count: int = 1000) -> NDArray[np.float32]:
    return np.full(count, 0.5, np.float32)


def observation(
    policy: Policy, *below: tuple[int, int], lift: int | None = None, **deviations: int
) -> Observation:
    """A gradient of 0.5 everywhere. `below` says how many coordinates of the replay are how much
    less, in words of the replay's scale."""
    lift = policy.largest_lift if lift is None else lift
    discrepancy = np.concatenate([np.full(count, words) for count, words in below])
    half = policy.fixed_point.words_per_unit // 2 >> (policy.largest_lift - lift)
    return Observation.of(
        policy, halves(discrepancy.size), Replayed(half - discrepancy, lift, **deviations)
    )


def honest_step(t: int = 3) -> HonestStep:
    rng = np.random.default_rng(t)
    weights, gradient, pre_activations = (rng.random(n, np.float32) for n in (7, 7, 4))
    return HonestStep(
        t,
        weights,
        rng.random((1, 28, 28, 1), np.float32),
        np.array([t % 10]),
        gradient,
        rng.random((1, 10), np.float32),
        pre_activations,
    )
