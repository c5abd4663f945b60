"""Gradient reuse: one computation serves several rounds."""

from __future__ import annotations

from dataclasses import dataclass

from opfl_chain.attacks.attack import AttackedStep, ExecutionCheat, Vector
from opfl_chain.attacks.state import AttackState


@dataclass(frozen=True)
class Reuse(ExecutionCheat):
    """A fresh gradient in every `interval`-th round, and the same one until the next."""

    interval: int

    @property
    def name(self) -> str:
        return f"reuse:{self.interval}"

    def is_fresh(self, t: int) -> bool:
        return t % self.interval == 0

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        last = None if self.is_fresh(step.t) else state.latest("gradient", step.t)
        if last is not None:
            return last[1]
        state.remember("gradient", step.t, step.gradient)
        return step.gradient
