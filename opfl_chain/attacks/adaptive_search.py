"""What an adaptive client submits: the candidate of `pgd` that passes best, then harms most.

A client does not know the replay of its step, and takes its own gradient for it: honest ones are
close together. It takes the update to be a step of plain gradient descent.
"""

from __future__ import annotations

from operator import itemgetter

import torch

from opfl_chain.attacks.attack import AttackedStep, Vector
from opfl_chain.attacks.pgd import PgdSettings, Victims, attack
from opfl_chain.models.registry import model_named
from opfl_chain.protocol.rules import Boundary
from opfl_chain.training.devices import deterministic
from opfl_chain.verifiers.opfl import Opfl
from opfl_chain.verifiers.room import headroom_of
from opfl_chain.verifiers.verifier import Reference, Replay


def most_harmful(
    step: AttackedStep, boundary: Boundary, beta: float, support: float | None
) -> Vector:
    """A gradient beta times its norm away from the honest one."""
    verifier = Opfl(step.policy, boundary)
    words = step.policy.fixed_point.encode_array("gradient", step.gradient)
    replay = Replay(words, headroom_of(step.policy, step.logits, step.labels))
    reference = Reference(step.gradient, replays={boundary.rule: replay})
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
            victim, [reference], verifier, beta, PgdSettings(), rows=[step.t], support=support
        )
        losses = [float(victim.losses(each)[0]) for each in candidates]
    submitted: list[Vector] = [each[0].numpy() for each in candidates]
    # Above all it must be accepted, and then do harm.
    accepted = [verifier.acceptance(each, reference) for each in submitted]
    return max(zip(accepted, losses, submitted, strict=True), key=itemgetter(0, 1))[2]
