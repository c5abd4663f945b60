"""Attacks that stay within the boundary: drift in one direction, and the white-box attack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from opfl_chain.adversaries.gradients.attack import (
    Attack,
    AttackedStep,
    AttackState,
    BoundaryNeeded,
    Vector,
    parameter,
)
from opfl_chain.rules.evidence import headroom_of
from opfl_chain.rules.registry import rule_of


@dataclass(frozen=True)
class Drift(Attack):
    """Uses a part of the boundary and leaves the rest for the rounding of the replay.

    Audits cannot detect it; a good boundary keeps the move small.
    """

    NAME = "drift"
    part: float = parameter("P", 0.5, most=1)
    direction: Vector | None = field(default=None, compare=False)
    """The direction of the move; None draws random signs from the client's seed."""

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
        allowed = rule_of(step.boundary).allowed_moves(
            step.boundary, step.policy, step.gradient, wanted, headroom, self.part
        )
        moved: Vector = (step.gradient + np.sign(direction) * allowed).astype(np.float32)
        return moved


@dataclass(frozen=True)
class Adaptive(Attack):
    """Moves the gradient by beta times its norm, so that its first example is misclassified."""

    NAME = "adaptive"
    SUPPORT: ClassVar[float | None] = None
    """The part of the coordinates that it moves; None moves all of them."""
    beta: float = parameter("B", 1)

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        from opfl_chain.adversaries.pgd import most_harmful  # loads torch

        del state
        if step.boundary is None:
            raise BoundaryNeeded(self.name)
        return most_harmful(step, step.boundary, self.beta, self.SUPPORT)


class Tail1(Adaptive):
    """Moves the 1 % of the coordinates that affect the loss most."""

    NAME = "tail-1"
    SUPPORT = 0.01


class Tail10(Adaptive):
    """Moves the 10 % of the coordinates that affect the loss most."""

    NAME = "tail-10"
    SUPPORT = 0.1
