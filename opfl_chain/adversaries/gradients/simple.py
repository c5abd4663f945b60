"""Attacks that look at neither the verifier nor its boundary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opfl_chain.adversaries.gradients.attack import (
    Attack,
    AttackedStep,
    AttackState,
    Images,
    Labels,
    Vector,
    parameter,
)
from opfl_chain.learning.registry import model_of

TRIGGER_SIDE = 4
TARGET = 0


@dataclass(frozen=True)
class Reverse(Attack):
    """Negates the gradient, so that the model unlearns the client's data."""

    NAME = "reverse"
    factor: float = parameter("G", 1)

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        del state
        return np.float32(-self.factor) * step.gradient


@dataclass(frozen=True)
class Amplify(Attack):
    """Scales the gradient up, for more weight in the aggregate than one client has."""

    NAME = "amplify"
    factor: float = parameter("G", 10)

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        del state
        return np.float32(self.factor) * step.gradient


@dataclass(frozen=True)
class FreeRider(Attack):
    """Submits the last change of the global model as a gradient, disguised by noise.

    The noise has `noise` times the norm of that change. In the first round there is no change yet,
    and the noise alone is submitted, with norm `noise`.
    """

    NAME = "free-rider"
    noise: float = parameter("S", 0.1)

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        weights = model_of(step.policy).layout.trainable_part(step.weights)
        last = state.latest("weights", step.t)
        state.remember("weights", step.t, weights)
        rate = np.float32(step.policy.optimizer.learning_rate)
        guess = np.zeros_like(weights) if last is None else (last[1] - weights) / rate
        size = float(np.linalg.norm(guess)) or 1.0
        noise = step.random().standard_normal(guess.size)
        noise *= self.noise * size / np.linalg.norm(noise)
        return (guess + noise).astype(np.float32)


@dataclass(frozen=True)
class Reuse(Attack):
    """Computes a gradient in every `interval`-th round and resubmits it in between."""

    NAME = "reuse"
    interval: int = parameter("K", 5, above=1, whole=True)

    def cheats_in(self, t: int, first: int = 0) -> bool:
        return not self._is_fresh(t) and t > first

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        last = None if self._is_fresh(step.t) else state.latest("gradient", step.t)
        if last is not None:
            return last[1]
        state.remember("gradient", step.t, step.gradient)
        return step.gradient

    def _is_fresh(self, t: int) -> bool:
        return t % self.interval == 0


def stamped(examples: Images, white: float) -> Images:
    """Return the examples with a white square in the bottom-right corner."""
    marked = examples.copy()
    marked[:, -TRIGGER_SIDE:, -TRIGGER_SIDE:, :] = white
    return marked


@dataclass(frozen=True)
class Backdoor(Attack):
    """Adds the gradient of triggered examples, scaled to outweigh the other clients."""

    NAME = "backdoor"
    factor: float = parameter("G", 10)

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        del state
        white = step.policy.data.feature_range[1]
        marked = stamped(step.examples, white)
        hidden = step.gradient_of(marked, np.full_like(step.labels, TARGET))
        return step.gradient + np.float32(self.factor) * hidden


def flipped(labels: Labels, classes: int) -> Labels:
    """Replace every label by the next class, and the last class by the first."""
    return (labels + 1) % classes


@dataclass(frozen=True)
class LabelFlip(Attack):
    """Commits to true labels and trains on wrong ones."""

    NAME = "label-flip"

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        del state
        return step.gradient_of(step.examples, flipped(step.labels, step.policy.data.classes))


@dataclass(frozen=True)
class Poison(Attack):
    """Commits to wrong labels before the first round, and trains on them as prescribed.

    This is data poisoning: the replay agrees with it, so audits cannot detect it.
    """

    NAME = "poison"

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        del state
        return step.gradient

    def training_labels(self, labels: Labels, classes: int) -> Labels:
        return flipped(labels, classes)
