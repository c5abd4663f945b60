"""Bounds on a norm: RoFL, EIFFeL, and none at all.

These are the acceptance rules in the domain of gradients, without their cryptography.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from opfl_chain.verifiers.errors import ReferenceMissing
from opfl_chain.verifiers.verifier import Penalty, Reference, Vector


@dataclass(frozen=True)
class NoVerifier:
    """Accepts whatever is submitted."""

    name: str = "none"

    def acceptance(self, submitted: Vector, reference: Reference) -> float:
        del submitted, reference
        return 1.0

    def penalty(self, references: Sequence[Reference], wanted: torch.Tensor) -> Penalty:
        del references, wanted
        return lambda submitted: torch.zeros(len(submitted))


@dataclass(frozen=True)
class RoflL2:
    """The L2 norm is at most `bound`."""

    bound: float
    name: str = "rofl-l2"

    def acceptance(self, submitted: Vector, reference: Reference) -> float:
        del reference
        return float(l2(submitted) <= self.bound)

    def penalty(self, references: Sequence[Reference], wanted: torch.Tensor) -> Penalty:
        del references, wanted
        return lambda submitted: hinge(submitted.norm(dim=1), self.bound)


@dataclass(frozen=True)
class RoflLinf:
    """No coordinate is larger than `bound`."""

    bound: float
    name: str = "rofl-linf"

    def acceptance(self, submitted: Vector, reference: Reference) -> float:
        del reference
        return float(np.abs(submitted).max() <= self.bound)

    def penalty(self, references: Sequence[Reference], wanted: torch.Tensor) -> Penalty:
        del references, wanted
        return lambda submitted: hinge(submitted.abs().amax(dim=1), self.bound)


@dataclass(frozen=True)
class EiffelNormBall:
    """No farther than `radius` from the gradient of public examples at the same weights."""

    radius: float
    name: str = "eiffel"

    def acceptance(self, submitted: Vector, reference: Reference) -> float:
        return float(l2(submitted - public_of(reference)) <= self.radius)

    def penalty(self, references: Sequence[Reference], wanted: torch.Tensor) -> Penalty:
        del wanted
        centres = torch.from_numpy(np.stack([public_of(each) for each in references]))
        return lambda submitted: hinge((submitted - centres).norm(dim=1), self.radius)


def public_of(reference: Reference) -> Vector:
    if reference.public is None:
        raise ReferenceMissing("EIFFeL", "the gradient of public examples")
    return reference.public


def l2(vector: Vector) -> float:
    return float(np.linalg.norm(vector.astype(np.float64)))


def hinge(statistic: torch.Tensor, bound: float) -> torch.Tensor:
    """The paper's penalty: max(c / b - 1, 0)^2."""
    return torch.clamp(statistic / bound - 1, min=0) ** 2
