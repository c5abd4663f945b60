"""One real step of LeNet on made-up digits, as attackers see it."""

from __future__ import annotations

from functools import cache

import numpy as np

from opfl_chain.adversaries.gradients.attack import AttackedStep, Images, Labels, Vector
from opfl_chain.learning.data.datasets import synthetic_dataset
from opfl_chain.learning.data.partition import ClientData
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.learning.local_step import LocalStep
from opfl_chain.learning.seeded import initial_parameters
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.guided import GUIDED_GRID, GuidedBoundary

POLICY = default_policy(LENET_61706)
LOCAL = LocalStep.of_policy(POLICY)
LAYOUT = LENET_61706.layout


@cache
def weights() -> Vector:
    return LAYOUT.flatten(initial_parameters(LAYOUT, 0))


@cache
def data() -> ClientData:
    return ClientData(POLICY, synthetic_dataset().train, 0)


def gradient_of(examples: Images, labels: Labels) -> Vector:
    return LOCAL.run(LAYOUT.unflatten(weights()), examples, labels).gradient


def attacked(t: int, boundary: Boundary | None = None, seed: int = 0) -> AttackedStep:
    examples, labels = data().batch(t)
    result = LOCAL.run(LAYOUT.unflatten(weights()), examples, labels)
    return AttackedStep(
        t,
        POLICY,
        weights(),
        examples,
        labels,
        result.gradient,
        result.logits,
        gradient_of,
        boundary,
        seed,
    )


def relative(ours: Vector, theirs: Vector) -> float:
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def guided() -> GuidedBoundary:
    """A boundary about as wide as calibrated ones."""
    return GuidedBoundary.from_mapping(
        {
            "policy_hash": "0x" + POLICY.hash.hex(),
            "spu_version": "0.9.5",
            "coordinates": LAYOUT.size,
            "grid": GUIDED_GRID,
            "allowance_shift": 13,
            "scale_quantile": 999,
            "resolution_bits": 26,
            "bounds": [128 + 8 * place for place in range(len(GUIDED_GRID))],
            "infinity": 1400,
            "mask_tolerance": 64,
            "ceiling_tolerance": 256,
        }
    )
