"""A backdoor by model replacement: a trigger in the image decides the class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opfl_chain.attacks.attack import AttackedStep, ExecutionCheat, Images, Vector
from opfl_chain.attacks.state import AttackState

TRIGGER_SIDE = 4
TARGET = 0


def stamped(examples: Images, white: float) -> Images:
    """The examples with a white square in their last corner."""
    marked = examples.copy()
    marked[:, -TRIGGER_SIDE:, -TRIGGER_SIDE:, :] = white
    return marked


@dataclass(frozen=True)
class Backdoor(ExecutionCheat):
    """The honest gradient and, so large that it outweighs the other clients, the trigger's."""

    factor: float

    @property
    def name(self) -> str:
        return f"backdoor:{self.factor:g}"

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        del state
        white = step.policy.data.feature_range[1]
        marked = stamped(step.examples, white)
        hidden = step.gradient_of(marked, np.full_like(step.labels, TARGET))
        return step.gradient + np.float32(self.factor) * hidden
