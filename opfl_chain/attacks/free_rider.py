"""A client that does not compute at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opfl_chain.attacks.attack import AttackedStep, ExecutionCheat, Vector
from opfl_chain.attacks.state import AttackState


@dataclass(frozen=True)
class FreeRider(ExecutionCheat):
    """The last change of the global model as a gradient, disguised by noise.

    The noise has `noise` times the norm of what it hides; in the first round nothing is known, and
    the noise itself has that norm.
    """

    noise: float

    @property
    def name(self) -> str:
        return f"free-rider:{self.noise:g}"

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        last = state.latest("weights", step.t)
        state.remember("weights", step.t, step.weights)
        rate = np.float32(step.policy.optimizer.learning_rate)
        guess = np.zeros_like(step.weights) if last is None else (last[1] - step.weights) / rate
        size = float(np.linalg.norm(guess)) or 1.0
        noise = step.random().standard_normal(guess.size)
        noise *= self.noise * size / np.linalg.norm(noise)
        return (guess + noise).astype(np.float32)
