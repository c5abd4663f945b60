"""The paper's baselines, with their bounds from honest steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opfl_chain.verifiers.errors import CalibrationEmpty
from opfl_chain.verifiers.norms import (
    EiffelNormBall,
    NoVerifier,
    RoflL2,
    RoflLinf,
    l2,
    public_of,
)
from opfl_chain.verifiers.risefl import RiseflGaussian
from opfl_chain.verifiers.verifier import Reference, Verifier


def baselines(honest: Sequence[Reference]) -> list[Verifier]:
    """Bounds are the largest of these steps, as in the paper, which takes the first hundred."""
    if not honest:
        raise CalibrationEmpty
    norm = max(l2(each.gradient) for each in honest)
    return [
        NoVerifier(),
        RoflL2(norm),
        RoflLinf(max(float(np.abs(each.gradient).max()) for each in honest)),
        EiffelNormBall(max(l2(each.gradient - public_of(each)) for each in honest)),
        RiseflGaussian(norm),
    ]
