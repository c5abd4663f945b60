"""Honest steps and replays that are made up: replays are off by a few units of the last place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from opfl_chain.calibration.boundaries import Observation
from opfl_chain.calibration.replayer import Replayed
from opfl_chain.calibration.steps import HonestStep
from opfl_chain.calibration.store import StepStore
from opfl_chain.evaluation.records import GUIDED, RuleRecords, RunName, policy_of
from opfl_chain.models.lenet import LENET_61706
from opfl_chain.models.relus import relu_units
from opfl_chain.training.synthetic import SYNTHETIC

RUN = RunName(LENET_61706, SYNTHETIC)
COORDINATES = LENET_61706.layout.size


def made_up_gradient(seed: int) -> NDArray[np.float32]:
    """Mostly small coordinates and some large ones, as gradients have them; half of them zero."""
    random = np.random.default_rng(seed)
    values = random.standard_normal(COORDINATES) * 10.0 ** random.uniform(-5, -1, COORDINATES)
    values[random.random(COORDINATES) < 0.5] = 0
    return values.astype(np.float32)


def made_up_replay(rule: str, gradient: NDArray[np.float32], seed: int, off: int = 3) -> Replayed:
    """Off by at most so many words of the replay's own scale, where the gradient is not zero."""
    policy = policy_of(rule, LENET_61706)
    words = policy.fixed_point.encode_array("gradient", gradient) >> policy.largest_lift
    noise = np.random.default_rng(seed).integers(-off, off + 1, words.size)
    return Replayed(words + noise * (gradient != 0), wrong_side=5, activation_error=9)


def made_up_observation(rule: str, seed: int, off: int = 3) -> Observation:
    gradient = made_up_gradient(seed)
    replayed = made_up_replay(rule, gradient, seed, off)
    return Observation.of(policy_of(rule, LENET_61706), gradient, replayed)


def made_up_records(root: Path, steps: int, rule: str = GUIDED, off: int = 3) -> RuleRecords:
    """A folder of made-up steps, in which every replay is as far off as any other."""
    store = StepStore(root / str(RUN))
    for t in range(steps):
        gradient = made_up_gradient(t)
        logits = np.zeros((1, 10), np.float32)
        store.save_step(
            HonestStep(
                t,
                weights=np.zeros(COORDINATES, np.float32),
                examples=np.zeros((1, 28, 28, 1), np.float32),
                labels=np.zeros(1, np.int64),
                gradient=gradient,
                logits=logits,
                pre_activations=np.ones(relu_units(LENET_61706), np.float32),
            )
        )
        store.save_replay(rule, t, made_up_replay(rule, gradient, t, off))
    return RuleRecords.open(root, RUN, rule)
