"""Constructed gradients and replays of a thousand coordinates with known discrepancies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.evidence import Observation, Replayed
from opfl_chain.rules.registry import rule_named

GUIDED = default_policy(LENET_61706)
PAPER = default_policy(LENET_61706, rule=rule_named("paper"))


def halves(count: int = 1000) -> NDArray[np.float32]:
    return np.full(count, 0.5, np.float32)


def observation(
    policy: Policy, *below: tuple[int, int], lift: int | None = None, **deviations: int
) -> Observation:
    """A gradient of 0.5 everywhere. `below` gives how many coordinates of the replay are smaller,
    and by how many words of the replay's scale."""
    lift = policy.largest_lift if lift is None else lift
    discrepancy = np.concatenate([np.full(count, words) for count, words in below])
    half = policy.fixed_point.words_per_unit // 2 >> (policy.largest_lift - lift)
    return Observation.of(
        policy, halves(discrepancy.size), Replayed(half - discrepancy, lift, **deviations)
    )
