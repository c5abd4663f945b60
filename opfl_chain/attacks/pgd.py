"""The white-box adaptive attack of the paper's appendix, on many steps at once.

The attacker moves the honest gradient by exactly beta times its norm, so that the loss after the
update grows while the verifier's penalty does not: normalised gradient ascent on the sphere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from opfl_chain.attacks.own_weights import logits_at
from opfl_chain.models.model import Model
from opfl_chain.verifiers.verifier import Reference, Verifier

BETAS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class PgdSettings:
    """The paper's by default."""

    iterations: int = 20
    step: float = 0.2
    """Of the radius."""
    random_starts: int = 2
    """Beside the one along the gradient of the loss."""
    penalty_weight: float = 100.0
    seed: int = 42


@dataclass(frozen=True, eq=False)
class Victims:
    """Steps whose update leads to a right prediction, as tensors with a row for each."""

    model: Model
    resting: torch.Tensor
    """The weights after an update by a gradient of zero: momentum alone."""
    rate: float
    gradients: torch.Tensor
    examples: torch.Tensor
    labels: torch.Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: slice | Sequence[int]) -> Victims:
        parts = (self.gradients[rows], self.examples[rows], self.labels[rows])
        return Victims(self.model, self.resting[rows], self.rate, *parts)

    def logits(self, submitted: torch.Tensor) -> torch.Tensor:
        """After the update by what was submitted."""
        return logits_at(self.model, self.resting - self.rate * submitted, self.examples)

    def losses(self, submitted: torch.Tensor) -> torch.Tensor:
        logits = self.logits(submitted)
        losses: torch.Tensor = functional.cross_entropy(logits, self.labels, reduction="none")
        return losses

    def flipped(self, submitted: torch.Tensor) -> torch.Tensor:
        """Where the prediction after the update is wrong."""
        with torch.inference_mode():
            return torch.ne(self.logits(submitted).argmax(1), self.labels)

    def loss_gradients(self) -> torch.Tensor:
        """Of the loss after the honest update, by what is submitted."""
        submitted = self.gradients.clone().requires_grad_()
        loss = self.losses(submitted).sum()
        gradients: torch.Tensor = torch.autograd.grad(loss, submitted)[0]
        return gradients

    @property
    def norms(self) -> torch.Tensor:
        norms: torch.Tensor = self.gradients.norm(dim=1, keepdim=True)
        return norms


def supports(loss_gradients: torch.Tensor, part: float) -> torch.Tensor:
    """1 on the part of each row's coordinates that the loss depends on most, 0 elsewhere."""
    count = max(int(part * loss_gradients.shape[1]), 1)
    mask = torch.zeros_like(loss_gradients)
    return mask.scatter_(1, loss_gradients.abs().topk(count, dim=1).indices, 1.0)


def starts(
    loss_gradients: torch.Tensor, settings: PgdSettings, rows: Sequence[int]
) -> list[torch.Tensor]:
    """Directions of length one: along the loss, and random ones that depend on the row's number."""
    found = [loss_gradients]
    for start in range(settings.random_starts):
        each = [np.random.default_rng([settings.seed, start, row]) for row in rows]
        drawn = [rng.standard_normal(loss_gradients.shape[1], np.float32) for rng in each]
        found.append(torch.from_numpy(np.stack(drawn)))
    return found


def attack(
    victims: Victims,
    references: Sequence[Reference],
    verifier: Verifier,
    beta: float,
    settings: PgdSettings,
    *,
    rows: Sequence[int],
    support: float | None = None,
) -> list[torch.Tensor]:
    """What the attacker ends with from each of its starts: submitted gradients, one a row.

    `rows` numbers the steps, so that a step meets the same random starts in any batch.
    """
    loss_gradients = victims.loss_gradients()
    mask = None if support is None else supports(loss_gradients, support)
    wanted = loss_gradients.abs() if mask is None else loss_gradients.abs() * mask
    penalty = verifier.penalty(references, wanted)
    radius = beta * victims.norms
    found = []
    for start in starts(loss_gradients, settings, rows):
        delta = _on_sphere(start if mask is None else start * mask, radius)
        for _ in range(settings.iterations):
            moved = delta.requires_grad_()
            submitted = victims.gradients + moved
            losses = victims.losses(submitted)
            objective = losses - settings.penalty_weight * penalty(submitted)
            (ascent,) = torch.autograd.grad(objective.sum(), moved)
            with torch.no_grad():
                if mask is not None:
                    ascent = ascent * mask
                ahead = delta + _on_sphere(ascent, settings.step * radius)
                delta = _on_sphere(ahead, radius)
        found.append((victims.gradients + delta).detach())
    return found


def _on_sphere(vectors: torch.Tensor, radius: torch.Tensor) -> torch.Tensor:
    """Rows of these lengths; a row of zeros stays."""
    norms = vectors.norm(dim=1, keepdim=True)
    return vectors * (radius / torch.where(norms > 0, norms, 1.0))
