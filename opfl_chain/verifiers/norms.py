"""Norm bounds: RoFL, EIFFeL, and no verifier.

Only the acceptance rules on plain gradients, without their cryptography.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from opfl_chain.verifiers.verifier import Penalty, Reference, ReferenceMissing, Vector, Verifier

_ALMOST = 1 - 1e-6
"""The part of a bound that float32 does not round to a value above it."""


@dataclass(frozen=True)
class NoVerifier(Verifier):
    """Accepts every gradient."""

    name: str = "none"

    def acceptance(self, submitted: Vector, reference: Reference) -> float:
        del submitted, reference
        return 1.0

    def penalty(self, references: Sequence[Reference], wanted: torch.Tensor) -> Penalty:
        del references, wanted
        return lambda submitted: torch.zeros(len(submitted))


@dataclass(frozen=True)
class RoflL2(Verifier):
    """Accepts gradients with an L2 norm of at most `bound`."""

    bound: float
    name: str = "rofl-l2"

    @classmethod
    def calibrated(cls, honest: Sequence[Reference]) -> RoflL2:
        return cls(max(l2(each.gradient) for each in honest))

    def acceptance(self, submitted: Vector, reference: Reference) -> float:
        del reference
        return float(l2(submitted) <= self.bound)

    def penalty(self, references: Sequence[Reference], wanted: torch.Tensor) -> Penalty:
        del references, wanted
        return lambda submitted: hinge(submitted.norm(dim=1), self.bound)

    def largest_submission(self, direction: Vector, reference: Reference) -> Vector:
        del reference
        return np.float32(self.bound * _ALMOST) * direction


@dataclass(frozen=True)
class RoflLinf(Verifier):
    """Accepts gradients with no coordinate larger than `bound`."""

    bound: float
    name: str = "rofl-linf"

    @classmethod
    def calibrated(cls, honest: Sequence[Reference]) -> RoflLinf:
        return cls(max(float(np.abs(each.gradient).max()) for each in honest))

    def acceptance(self, submitted: Vector, reference: Reference) -> float:
        del reference
        return float(np.abs(submitted).max() <= self.bound)

    def penalty(self, references: Sequence[Reference], wanted: torch.Tensor) -> Penalty:
        del references, wanted
        return lambda submitted: hinge(submitted.abs().amax(dim=1), self.bound)

    def largest_submission(self, direction: Vector, reference: Reference) -> Vector:
        """Return the largest gradient with the signs of the direction."""
        del reference
        return np.float32(self.bound) * np.sign(direction)


@dataclass(frozen=True)
class EiffelNormBall(Verifier):
    """Accepts gradients within `radius` of the gradient of public examples at the same weights."""

    radius: float
    name: str = "eiffel"

    compares_with_public = True

    @classmethod
    def calibrated(cls, honest: Sequence[Reference]) -> EiffelNormBall:
        return cls(max(l2(each.gradient - public_of(each)) for each in honest))

    def acceptance(self, submitted: Vector, reference: Reference) -> float:
        return float(l2(submitted - public_of(reference)) <= self.radius)

    def penalty(self, references: Sequence[Reference], wanted: torch.Tensor) -> Penalty:
        del wanted
        centres = torch.from_numpy(np.stack([public_of(each) for each in references]))
        return lambda submitted: hinge((submitted - centres).norm(dim=1), self.radius)

    def largest_submission(self, direction: Vector, reference: Reference) -> Vector:
        return public_of(reference) + np.float32(self.radius * _ALMOST) * direction


def public_of(reference: Reference) -> Vector:
    if reference.public is None:
        raise ReferenceMissing("EIFFeL", "the gradient of public examples")
    return reference.public


def l2(vector: Vector) -> float:
    return float(np.linalg.norm(vector.astype(np.float64)))


def hinge(statistic: torch.Tensor, bound: float) -> torch.Tensor:
    """The paper's penalty: max(c / b - 1, 0)^2."""
    return torch.clamp(statistic / bound - 1, min=0) ** 2
