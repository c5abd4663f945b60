"""What counts as a successful attack, and how often there is one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from opfl_chain.evaluation.binomial import upper_bound


def success_rate(effects: Sequence[bool], acceptances: Sequence[float]) -> float:
    """ASR: the mean over all attempts of effect times probability of acceptance.

    An attempt without an effect, or that is never accepted, counts as a failure and stays in the
    denominator.
    """
    if len(effects) != len(acceptances) or not effects:
        raise ValueError(f"{len(effects)} effects and {len(acceptances)} acceptances have no rate")
    return float(np.mean(np.array(effects, float) * np.array(acceptances, float)))


def best_candidates(
    effects: NDArray[np.bool_], acceptances: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Of several candidates (rows) of each instance (columns), the one that succeeds most."""
    return np.asarray((effects * acceptances).argmax(0))


def rejection_rate(acceptances: Sequence[float]) -> dict[str, float | int]:
    """FRR: the expected part of honest steps that is rejected."""
    steps = len(acceptances)
    rejected = float(steps - np.sum(acceptances))
    return {
        "honest_steps": steps,
        "rejected": rejected,
        "frr": rejected / steps if steps else 0.0,
        "frr_upper95": upper_bound(round(rejected), steps) if steps else 1.0,
    }
