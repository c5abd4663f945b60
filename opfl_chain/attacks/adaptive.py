"""The adaptive attack of `pgd` as one client plays it, in a job as it runs."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter

import torch

from opfl_chain.attacks.attack import AttackedStep, ExecutionCheat, Vector
from opfl_chain.attacks.errors import BoundaryNeeded
from opfl_chain.attacks.pgd import PgdSettings, Victims, attack
from opfl_chain.attacks.state import AttackState
from opfl_chain.models.registry import model_named
from opfl_chain.training.devices import deterministic
from opfl_chain.verifiers.opfl import Opfl
from opfl_chain.verifiers.room import headroom_of
from opfl_chain.verifiers.verifier import Reference, Replay


@dataclass(frozen=True)
class Adaptive(ExecutionCheat):
    """Moves by beta times the norm of the gradient, to have its first example predicted wrongly.

    A client does not know the replay of its step, and takes its own gradient for it: honest ones
    are close together. It takes the update to be a step of plain gradient descent.
    """

    beta: float
    support: float | None = None
    """The part of the coordinates that it moves, all if there is none."""

    @property
    def name(self) -> str:
        kind = "adaptive" if self.support is None else f"tail-{100 * self.support:g}"
        return f"{kind}:{self.beta:g}"

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        del state
        if step.boundary is None:
            raise BoundaryNeeded(self.name)
        verifier = Opfl(step.policy, step.boundary)
        words = step.policy.fixed_point.encode_array("gradient", step.gradient)
        replay = Replay(words, headroom_of(step.policy, step.logits, step.labels))
        reference = Reference(step.gradient, replays={step.boundary.rule: replay})
        victim = Victims(
            model_named(step.policy.model.name),
            torch.from_numpy(step.weights[None]),
            step.policy.optimizer.learning_rate,
            torch.from_numpy(step.gradient[None]),
            torch.from_numpy(step.examples[:1]),
            torch.from_numpy(step.labels[:1]),
        )
        with deterministic():
            candidates = attack(
                victim,
                [reference],
                verifier,
                self.beta,
                PgdSettings(),
                rows=[step.t],
                support=self.support,
            )
            losses = [float(victim.losses(each)[0]) for each in candidates]
        submitted: list[Vector] = [each[0].numpy() for each in candidates]
        # Above all it must be accepted, and then do harm.
        accepted = [verifier.acceptance(each, reference) for each in submitted]
        return max(zip(accepted, losses, submitted, strict=True), key=itemgetter(0, 1))[2]
