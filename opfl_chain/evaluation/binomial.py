"""What a count of rejections says of their probability."""

from __future__ import annotations

import math

CONFIDENCE = 0.95
_BISECTIONS = 60


def upper_bound(rejected: int, steps: int, confidence: float = CONFIDENCE) -> float:
    """The largest probability under which so few rejections are not yet surprising.

    Exact (Clopper and Pearson), one-sided: at this probability as few rejections or fewer have a
    chance of 1 - confidence. None of n gives about 3 / n.
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
    """The chance of at most so many successes."""
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
