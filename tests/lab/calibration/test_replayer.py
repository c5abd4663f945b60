"""Batched replays in MPC."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from constructed import GUIDED, PAPER

from opfl_chain.lab.calibration.replayer import Replayer, StepReplays
from opfl_chain.lab.calibration.steps import honest_run
from opfl_chain.learning.data.datasets import synthetic_dataset
from opfl_chain.mpc.local import LocalCommittee
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.evidence import Observation


@pytest.fixture(scope="module")
def local() -> Iterator[LocalCommittee]:
    with LocalCommittee() as committee:
        yield committee


def distance(seen: Observation) -> float:
    """Distance of a replay from a gradient, relative to the gradient."""
    return float(np.linalg.norm(seen.replay.words - seen.gradient) / np.linalg.norm(seen.gradient))


@pytest.mark.parametrize("policy", [GUIDED, PAPER], ids=["guided", "paper"])
def test_steps_side_by_side_are_replayed_each_at_its_own_weights(
    local: LocalCommittee, policy: Policy
) -> None:
    run = honest_run(policy, synthetic_dataset(train=50, test=1).train, 6, [0, 2, 5])
    steps = [step for _, _, step in run if step]
    replays = StepReplays(policy, 2)  # the batch of the third step is padded
    with local.session(seconds=120) as committee:
        replayed = list(Replayer(committee, policy, replays).replay_all(steps))
    assert len(replayed) == 3
    for step, own in zip(steps, replayed, strict=True):
        assert distance(Observation.of(policy, step.gradient, own)) < 1e-4
    assert distance(Observation.of(policy, steps[0].gradient, replayed[1])) > 0.1
