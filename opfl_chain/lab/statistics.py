"""Rejection rates of honest steps, with causes and confidence bounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.evidence import Profile

CONFIDENCE = 0.95
_BISECTIONS = 60


@dataclass(frozen=True)
class Rate:
    """Rejections among honest steps. A step may be rejected for several causes."""

    honest_steps: int
    rejected: int
    rejected_by_cause: dict[str, int]

    @classmethod
    def of(cls, boundary: Boundary, profiles: Iterable[Profile]) -> Rate:
        causes = [profile.causes(boundary) for profile in profiles]
        counted = Counter(cause for each in causes for cause in each)
        return cls(len(causes), sum(map(bool, causes)), dict(sorted(counted.items())))

    @property
    def report(self) -> dict[str, Any]:
        steps = self.honest_steps
        return {
            "honest_steps": steps,
            "rejected": self.rejected,
            "rejected_by_cause": self.rejected_by_cause,
            "frr": self.rejected / steps if steps else None,
            "frr_upper95": upper_bound(self.rejected, steps) if steps else None,
        }


def upper_bound(rejected: int, steps: int, confidence: float = CONFIDENCE) -> float:
    """Return the one-sided Clopper-Pearson upper bound of the rejection probability.

    Exact: at this probability, at most this many rejections have a chance of 1 - confidence. For 0
    of n it is about 3 / n.
    """
    if not 0 <= rejected <= steps or steps == 0:
        raise ValueError(f"{rejected} of {steps} is not a count of rejections")
    if rejected == steps:
        return 1.0
    low, high = rejected / steps, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _at_most(rejected, steps, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _at_most(most: int, trials: int, probability: float) -> float:
    """Return the probability of at most `most` successes."""
    if probability in (0.0, 1.0):
        return 1.0 - probability
    terms = (
        math.lgamma(trials + 1)
        - math.lgamma(count + 1)
        - math.lgamma(trials - count + 1)
        + count * math.log(probability)
        + (trials - count) * math.log1p(-probability)
        for count in range(most + 1)
    )
    return math.fsum(map(math.exp, terms))
