"""The one interface of attacks, for the client's daemon and for the evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from opfl_chain.attacks.state import AttackState
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.rules import Boundary

Vector = NDArray[np.float32]
Images = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AttackedStep:
    """What a client has in a round before it commits to a gradient."""

    t: int
    policy: Policy
    weights: Vector
    """Flat, in canonical order: the global model."""
    examples: Images
    """The committed input, which an audit replays."""
    labels: Labels
    gradient: Vector
    """The honest one, flat."""
    logits: NDArray[np.float32]
    gradient_of: Callable[[Images, Labels], Vector]
    """The gradient of other examples at the same weights."""
    boundary: Boundary | None = None
    seed: int = 0
    """Of the client's own randomness; a round draws the same whenever it is repeated."""

    def random(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.t])


class Attack(Protocol):
    """Submitting a round twice with the same memory gives the same gradient twice."""

    @property
    def name(self) -> str:
        """As `attack_named` reads it."""

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        """The gradient that the client commits to instead of the honest one."""

    def training_labels(self, labels: Labels, classes: int) -> Labels:
        """The labels that the client commits to before the first round."""


class ExecutionCheat:
    """Commits to its true data: whoever replays the step sees the difference."""

    def training_labels(self, labels: Labels, classes: int) -> Labels:
        del classes
        return labels
