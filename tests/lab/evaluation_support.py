"""Made-up honest steps and replays: replays differ by a few units in the last place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from opfl_chain.lab.boundary.records import RuleRecords, RunName
from opfl_chain.lab.calibration.steps import HonestStep, StepStore
from opfl_chain.learning.data.datasets import SYNTHETIC
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.learning.model import relu_units
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.rules.evidence import Observation, Replayed
from opfl_chain.rules.registry import rule_named
from opfl_chain.rules.rule import AnyRule

PAPER, GUIDED = rule_named("paper"), rule_named("guided")
RULES = (PAPER, GUIDED)
RUN = RunName(LENET_61706, SYNTHETIC)
COORDINATES = LENET_61706.layout.size


def made_up_gradient(seed: int) -> NDArray[np.float32]:
    """A realistic gradient: mostly small coordinates, some large ones, half of them zero."""
    random = np.random.default_rng(seed)
    values = random.standard_normal(COORDINATES) * 10.0 ** random.uniform(-5, -1, COORDINATES)
    values[random.random(COORDINATES) < 0.5] = 0
    return values.astype(np.float32)


def made_up_replay(
    rule: AnyRule, gradient: NDArray[np.float32], seed: int, off: int = 3
) -> Replayed:
    """A replay with a bounded error in words of its own scale, where the gradient is not zero."""
    policy = default_policy(LENET_61706, rule=rule)
    words = policy.fixed_point.encode_array("gradient", gradient) >> policy.largest_lift
    noise = np.random.default_rng(seed).integers(-off, off + 1, words.size)
    return Replayed(words + noise * (gradient != 0), wrong_side=5, activation_error=9)


def made_up_observation(rule: AnyRule, seed: int, off: int = 3) -> Observation:
    gradient = made_up_gradient(seed)
    replayed = made_up_replay(rule, gradient, seed, off)
    return Observation.of(default_policy(LENET_61706, rule=rule), gradient, replayed)


def made_up_records(root: Path, steps: int, rule: AnyRule = GUIDED, off: int = 3) -> RuleRecords:
    """A folder of made-up steps whose replays all have the same error."""
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
        store.save_replay(rule.name, t, made_up_replay(rule, gradient, t, off))
    return RuleRecords.open(root, RUN, rule)
