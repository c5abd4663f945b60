"""RiseFL: an L2 norm test on random projections, so acceptance is probabilistic.

A gradient u is projected on K Gaussian vectors. The sum of squares is |u|^2 times a chi-square
variable with K degrees of freedom. It must not exceed q * B^2, where q is chosen so that a gradient
of norm B exceeds it with probability epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import chi2

from opfl_chain.verifiers.norms import l2
from opfl_chain.verifiers.verifier import ACCEPTED_WITH, Penalty, Reference, Vector, Verifier

PROJECTIONS = 1000
EPSILON = 2.0**-128

_BLOCK = 50
"""Projections drawn at once: all of them would take a quarter of a gigabyte."""


@dataclass(frozen=True)
class RiseflGaussian(Verifier):
    bound: float
    projections: int = PROJECTIONS
    epsilon: float = EPSILON
    name: str = "risefl"

    @classmethod
    def calibrated(cls, honest: Sequence[Reference]) -> RiseflGaussian:
        return cls(max(l2(each.gradient) for each in honest))

    @cached_property
    def quantile(self) -> float:
        """q: the quantile of the chi-square distribution at 1 - epsilon."""
        return float(chi2.isf(self.epsilon, self.projections))

    @property
    def limit(self) -> float:
        """Upper limit of the sum of squared projections."""
        return self.quantile * self.bound**2

    def acceptance(self, submitted: Vector, reference: Reference) -> float:
        del reference
        square = l2(submitted) ** 2
        return float(chi2.cdf(self.limit / square, self.projections)) if square else 1.0

    def penalty(self, references: Sequence[Reference], wanted: torch.Tensor) -> Penalty:
        """(1 - acceptance)^2, through the regularised incomplete gamma function."""
        del references, wanted
        half = torch.tensor(self.projections / 2, dtype=torch.float64)

        def penalty(submitted: torch.Tensor) -> torch.Tensor:
            square = (submitted**2).sum(1).double()
            # Compute 1 - acceptance directly: subtracting from 1 would cancel all digits.
            rejected: torch.Tensor = torch.special.gammaincc(half, self.limit / square / 2)
            return (rejected**2).to(submitted.dtype)

        return penalty

    def norm_accepted_with(self, probability: float) -> float:
        """Return the norm at which a gradient is accepted with this probability."""
        return float(np.sqrt(self.limit / chi2.ppf(probability, self.projections)))

    def largest_submission(self, direction: Vector, reference: Reference) -> Vector:
        del reference
        return np.float32(self.norm_accepted_with(ACCEPTED_WITH)) * direction

    def audit(
        self, submitted: NDArray[np.float32], random: np.random.Generator
    ) -> NDArray[np.bool_]:
        """Project gradients (one per row) on fresh Gaussian vectors and test the sums."""
        sums = np.zeros(len(submitted))
        for start in range(0, self.projections, _BLOCK):
            count = min(_BLOCK, self.projections - start)
            vectors = random.standard_normal((submitted.shape[1], count), np.float32)
            sums += ((submitted @ vectors).astype(np.float64) ** 2).sum(1)
        return np.asarray(sums <= self.limit)
