"""A new rule: its boundary, calibration, causes of rejections, and its circuit inside MPC.

For jobs: entry point `linf = "my_package:LINF"` in the group `opfl_chain.rules`.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

import opfl_chain
from opfl_chain import extend


class LinfBoundary(extend.Boundary):
    rule: Literal["linf"] = "linf"
    infinity: extend.Natural


class Linf(extend.Rule[LinfBoundary]):
    """Every coordinate of the gradient must be as close to the replay as in honest steps."""

    boundary = LinfBoundary
    alpha = 4.0

    def calibrate(
        self, policy: extend.Policy, observations: Sequence[extend.Observation], alpha: float
    ) -> LinfBoundary:
        infinity = math.ceil(alpha * max(map(farthest, observations)))
        return LinfBoundary.of_policy(policy, observations[0].gradient.size, infinity=infinity)

    def causes(self, boundary: LinfBoundary, observation: extend.Observation) -> list[str]:
        return ["infinity"] if farthest(observation) > boundary.infinity else []

    def faults(self, circuit, boundary, evidence, forms):  # type: ignore[no-untyped-def]
        gradient, replay = evidence.gradient, evidence.replay.gradient
        apart = gradient[0] - replay[0], gradient[1] - replay[1]
        above = extend.add_public(circuit.rank, apart, boundary.infinity)
        below = extend.add_public(circuit.rank, extend.negative(apart), boundary.infinity)
        both = (np.concatenate(pair) for pair in zip(above, below, strict=True))
        return extend.to_boolean(circuit, *both).local(lambda words: words >> np.uint64(63))


LINF = Linf()


def farthest(observation: extend.Observation) -> int:
    return int(np.abs(observation.gradient - observation.replay.words).max())


if __name__ == "__main__":
    data = opfl_chain.load_dataset("synthetic")
    with extend.RULES.plugged_in("linf", LINF):
        policy = opfl_chain.default_policy("lenet-61706", rule="linf", batch_size=4)
        calibration = opfl_chain.calibrate(policy, data, steps=6)
        for attack in (None, "reverse"):
            batch = data.train.take(slice(4))
            print(opfl_chain.audit_step(policy, calibration.boundary, batch, attack=attack))
