"""Projected gradient descent against a verifier: the most harmful gradient that it may accept.

A model's operations apply one set of weights to a batch. With weights per example, all attacks of a
batch take one pass: products are batched, and autograd sees one sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import torch
from torch.nn import functional

from opfl_chain.learning.devices import deterministic
from opfl_chain.learning.model import Model, operations_of
from opfl_chain.learning.operations.table import Operations
from opfl_chain.learning.registry import model_of
from opfl_chain.roles.client.conduct import FinishedStep, Vector
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.evidence import Replay, headroom_of
from opfl_chain.verifiers.opfl import Opfl
from opfl_chain.verifiers.verifier import Reference, Verifier

BETAS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)


def _own_convolution(
    images: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, *, padding: int
) -> torch.Tensor:
    around = (padding, padding)
    padded = functional.pad(images, (0, 0, *around, *around)) if padding else images
    count, side, _, inputs, outputs = weight.shape
    windows = padded.unfold(1, side, 1).unfold(2, side, 1).permute(0, 1, 2, 4, 5, 3)
    height, width = windows.shape[1:3]
    flat = windows.reshape(count, height * width, side * side * inputs)
    products = torch.baddbmm(bias[:, None], flat, weight.reshape(count, -1, outputs))
    return products.reshape(count, height, width, outputs)


def _own_dense(values: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.baddbmm(bias[:, None], values[:, None], weight)[:, 0]


def _average_pool(images: torch.Tensor) -> torch.Tensor:
    count, height, width, channels = images.shape
    squares = images.reshape(count, height // 2, 2, width // 2, 2, channels)
    return squares.mean((2, 4))


OWN_WEIGHTS: Mapping[str, Callable[..., torch.Tensor]] = {
    "convolution": _own_convolution,
    "dense": _own_dense,
    "average_pool": _average_pool,
    "relu": functional.relu,
}
"""Operations on parameters with an additional leading axis for the examples."""


def logits_at(model: Model, weights: torch.Tensor, examples: torch.Tensor) -> torch.Tensor:
    """Return the logits of example i at row i of the weights (flat, in canonical order)."""
    layout = model.layout
    # One split: slicing would give autograd a full-length gradient vector per slice.
    parts = torch.split_with_sizes(weights, [parameter.size for parameter in layout], dim=1)
    parameters = {
        parameter.name: part.reshape(len(weights), *parameter.shape)
        for parameter, part in zip(layout, parts, strict=True)
    }
    logits: torch.Tensor
    if operations_of(model) <= set(OWN_WEIGHTS):
        logits = model.logits(parameters, examples, Operations("torch", **OWN_WEIGHTS))
        return logits

    def of_one(own: Mapping[str, torch.Tensor], example: torch.Tensor) -> torch.Tensor:
        one: torch.Tensor = model.logits(own, example[None], Operations("torch"))[0]
        return one

    logits = torch.vmap(of_one)(parameters, examples)
    return logits


@dataclass(frozen=True)
class PgdSettings:
    """Attack settings; the defaults are the paper's."""

    iterations: int = 20
    step: float = 0.2
    """Step length, as a part of the radius."""
    random_starts: int = 2
    """Number of random starts, in addition to the one along the gradient of the loss."""
    penalty_weight: float = 100.0
    seed: int = 42


@dataclass(frozen=True, eq=False)
class Victims:
    """Steps whose honest update predicts correctly, as tensors with one row per step."""

    model: Model
    resting: torch.Tensor
    """The weights after an update with a zero gradient: momentum only."""
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
        """Return the logits after the update with the submitted gradients."""
        layout = self.model.layout
        if layout.frozen.size:
            places = torch.from_numpy(layout.trainable_indices)
            updated = self.resting.index_add(1, places, submitted, alpha=-self.rate)
        else:
            updated = self.resting - self.rate * submitted
        return logits_at(self.model, updated, self.examples)

    def losses(self, submitted: torch.Tensor) -> torch.Tensor:
        logits = self.logits(submitted)
        losses: torch.Tensor = functional.cross_entropy(logits, self.labels, reduction="none")
        return losses

    def flipped(self, submitted: torch.Tensor) -> torch.Tensor:
        """Return a mask of the rows whose prediction is wrong after the update."""
        with torch.inference_mode():
            return torch.ne(self.logits(submitted).argmax(1), self.labels)

    def loss_gradients(self) -> torch.Tensor:
        """Return the gradients of the loss after the honest update, by the submitted gradient."""
        submitted = self.gradients.clone().requires_grad_()
        loss = self.losses(submitted).sum()
        gradients: torch.Tensor = torch.autograd.grad(loss, submitted)[0]
        return gradients

    @property
    def norms(self) -> torch.Tensor:
        norms: torch.Tensor = self.gradients.norm(dim=1, keepdim=True)
        return norms


def supports(loss_gradients: torch.Tensor, part: float) -> torch.Tensor:
    """Return a mask: 1 on the part of each row's coordinates that affect the loss most, else 0."""
    count = max(int(part * loss_gradients.shape[1]), 1)
    mask = torch.zeros_like(loss_gradients)
    return mask.scatter_(1, loss_gradients.abs().topk(count, dim=1).indices, 1.0)


def starts(
    loss_gradients: torch.Tensor, settings: PgdSettings, rows: Sequence[int]
) -> list[torch.Tensor]:
    """Return the start directions: along the loss, and random ones seeded by the row's number."""
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
    """Run the attack from each start, and return one batch of submitted gradients per start.

    `rows` numbers the steps, so that a step gets the same random starts in any batch.
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
    """Scale each row to its radius; zero rows stay zero."""
    norms = vectors.norm(dim=1, keepdim=True)
    return vectors * (radius / torch.where(norms > 0, norms, 1.0))


def most_harmful(
    step: FinishedStep, boundary: Boundary, beta: float, support: float | None
) -> Vector:
    """Return a gradient at a distance of beta times the norm of the honest one."""
    verifier = Opfl(step.policy, boundary)
    words = step.policy.fixed_point.encode_array("gradient", step.gradient)
    replay = Replay(words, headroom_of(step.policy, step.logits, step.labels))
    reference = Reference(step.gradient, replays={boundary.rule: replay})
    victim = Victims(
        model_of(step.policy),
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
    # Acceptance first, then harm.
    accepted = [verifier.acceptance(each, reference) for each in submitted]
    return max(zip(accepted, losses, submitted, strict=True), key=itemgetter(0, 1))[2]
