"""A verifier: a rule that accepts or rejects submitted gradients in the clear.

To add one, subclass :class:`Verifier` and register the class under its name in the entry point
group `opfl_chain.verifiers`. The tables of attacks then include it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from opfl_chain.rules.evidence import Replay

UNBOUNDED = 10.0
"""Size of an unbounded cheat, in norms of its gradient: the largest beta of the paper."""
ACCEPTED_WITH = 1 - 1e-4
"""Probability that a submission is accepted which counts as almost always."""
_BISECTIONS = 40
Vector = NDArray[np.float32]
Penalty = Callable[[torch.Tensor], torch.Tensor]
"""Maps submitted gradients (one per row) to their distance from acceptance, 0 if accepted."""


class VerifierError(Exception):
    """Base class of the errors of this package."""


class ReferenceMissing(VerifierError):
    def __init__(self, verifier: str, what: str) -> None:
        super().__init__(f"{verifier} compares with {what}, but the step has none")


class CalibrationEmpty(VerifierError):
    def __init__(self) -> None:
        super().__init__("cannot derive bounds: no honest steps were given")


class BoundaryOfAnotherPolicy(VerifierError):
    """The boundary was calibrated for another policy than the one that encodes the gradients."""

    def __init__(self, theirs: str, ours: str) -> None:
        super().__init__(
            f"the boundary is for policy {theirs}, but gradients are encoded by policy {ours}:"
            " calibrate a boundary for that policy"
        )


@dataclass(frozen=True, eq=False)
class Reference:
    """The values that verifiers compare a submitted gradient of one step with."""

    gradient: Vector
    """The honest gradient. Attackers build on it; verifiers do not know it."""
    public: Vector | None = None
    """The gradient of public examples at the same weights, for EIFFeL."""
    replays: Mapping[str, Replay] = field(default_factory=dict)
    """Replays by rule, for OPFL."""


class Verifier(ABC):
    """Accepts or rejects gradients; adaptive attackers know it."""

    compares_with_public: ClassVar[bool] = False
    """True if references need the gradient of public examples."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @classmethod
    def calibrated(cls, honest: Sequence[Reference]) -> Verifier:
        """Return a verifier with bounds from honest steps; this one has no bounds."""
        del honest
        return cls()

    @abstractmethod
    def acceptance(self, submitted: Vector, reference: Reference) -> float:
        """Return the probability that a gradient is accepted: 0 or 1 for deterministic rules."""

    @abstractmethod
    def penalty(self, references: Sequence[Reference], wanted: torch.Tensor) -> Penalty:
        """Return the penalty that an adaptive attacker minimises, with one row per reference.

        `wanted` weighs the coordinates by how much the attacker wants to move them.
        """

    def can_judge(self, reference: Reference) -> bool:
        """Return whether the reference has all that this verifier compares with."""
        del reference
        return True

    def audit(self, submitted: Vector, random: np.random.Generator) -> NDArray[np.bool_] | None:
        """Draw verdicts on gradients (one per row), None if the verifier is deterministic."""
        del submitted, random
        return None

    def farthest(self, reference: Reference) -> float:
        """Return an upper bound on the distance of accepted gradients from the honest one."""
        del reference
        return math.inf

    def largest_submission(self, direction: Vector, reference: Reference) -> Vector:
        """Return the largest gradient in a unit direction that is almost always accepted.

        Found by bisection: a verifier that knows its bound overrides it.
        """

        def of_length(length: float) -> Vector:
            return (length * direction).astype(np.float32)

        def accepts(length: float) -> bool:
            return self.acceptance(of_length(length), reference) >= ACCEPTED_WITH

        low, high = 0.0, UNBOUNDED * float(np.linalg.norm(reference.gradient.astype(np.float64)))
        if accepts(high):
            return of_length(high)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if accepts(middle) else (low, middle)
        return of_length(low)
