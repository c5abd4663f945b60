"""The adaptive attack of `pgd` as one client plays it, in a job as it runs."""

from __future__ import annotations

from dataclasses import dataclass

from opfl_chain.attacks.attack import AttackedStep, ExecutionCheat, Vector
from opfl_chain.attacks.errors import BoundaryNeeded
from opfl_chain.attacks.state import AttackState


@dataclass(frozen=True)
class Adaptive(ExecutionCheat):
    """Moves by beta times the norm of the gradient, to have its first example predicted wrongly."""

    beta: float
    support: float | None = None
    """The part of the coordinates that it moves, all if there is none."""

    @property
    def name(self) -> str:
        kind = "adaptive" if self.support is None else f"tail-{100 * self.support:g}"
        return f"{kind}:{self.beta:g}"

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        from opfl_chain.attacks.adaptive_search import most_harmful  # loads torch

        del state
        if step.boundary is None:
            raise BoundaryNeeded(self.name)
        return most_harmful(step, step.boundary, self.beta, self.support)
