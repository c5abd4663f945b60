"""Wrong labels, in the execution alone or in the committed data as well."""

from __future__ import annotations

from dataclasses import dataclass

from opfl_chain.attacks.attack import AttackedStep, ExecutionCheat, Labels, Vector
from opfl_chain.attacks.state import AttackState


def flipped(labels: Labels, classes: int) -> Labels:
    """Every label is replaced by the next class, the last by the first."""
    return (labels + 1) % classes


@dataclass(frozen=True)
class LabelFlip(ExecutionCheat):
    """Commits to its true labels and trains on others."""

    name: str = "label-flip"

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        del state
        return step.gradient_of(step.examples, flipped(step.labels, step.policy.data.classes))


@dataclass(frozen=True)
class Poison:
    """Commits to wrong labels before the first round, and trains on them as prescribed.

    This is data poisoning: the replay agrees with it, and no audit can see it.
    """

    name: str = "poison"

    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        del state
        return step.gradient

    def training_labels(self, labels: Labels, classes: int) -> Labels:
        return flipped(labels, classes)
