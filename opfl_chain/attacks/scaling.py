"""The honest gradient times a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opfl_chain.attacks.attack import AttackedStep, ExecutionCheat, Vector
from opfl_chain.attacks.state import AttackState


@dataclass(frozen=True)
class Reverse(ExecutionCheat):
    """Against what the client's data says: the model unlearns."""

    factor: float

    @property
    def name(self) -> str:
        return f"reverse:{self.factor:g}"

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        del state
        return np.float32(-self.factor) * step.gradient


@dataclass(frozen=True)
class Amplify(ExecutionCheat):
    """More weight in the aggregate than one client has."""

    factor: float

    @property
    def name(self) -> str:
        return f"amplify:{self.factor:g}"

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        del state
        return np.float32(self.factor) * step.gradient
