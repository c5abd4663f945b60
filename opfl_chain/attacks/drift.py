"""Drift below the boundary: as much as it allows, in every round, in one direction."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from opfl_chain.attacks.attack import AttackedStep, ExecutionCheat, Vector
from opfl_chain.attacks.errors import BoundaryNeeded
from opfl_chain.attacks.state import AttackState
from opfl_chain.verifiers.room import headroom_of, room


@dataclass(frozen=True)
class Drift(ExecutionCheat):
    """Uses a part of the boundary: the rest is for the rounding of the replay.

    It cannot be caught, and how little it moves is what a boundary is judged by.
    """

    part: float
    direction: Vector | None = field(default=None, compare=False)
    """Of the gradient; random signs by the client's seed if there is none."""

    @property
    def name(self) -> str:
        return f"drift:{self.part:g}"

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        del state
        if step.boundary is None:
            raise BoundaryNeeded(self.name)
        direction = self.direction
        if direction is None:
            signs = np.random.default_rng(step.seed).choice([-1.0, 1.0], step.gradient.size)
            direction = signs.astype(np.float32)
        headroom = headroom_of(step.policy, step.logits, step.labels)
        wanted = np.abs(direction.astype(np.float64))
        allowed = room(step.boundary, step.policy, step.gradient, wanted, headroom, self.part)
        return (step.gradient + np.sign(direction) * allowed).astype(np.float32)
