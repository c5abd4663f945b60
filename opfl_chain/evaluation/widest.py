"""The boundary of many steps from the boundaries of each.

Bounds are maxima over steps, so calibrating on many steps is the same as calibrating on each alone
and taking the widest of every bound. Steps of a run are then read once for any number of subsets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opfl_chain.calibration.errors import NothingToCalibrate
from opfl_chain.protocol.boundary import PaperBoundary
from opfl_chain.protocol.guided import GuidedBoundary
from opfl_chain.protocol.rules import Boundary


def widest(boundaries: Sequence[Boundary]) -> Boundary:
    """Return the narrowest boundary that accepts whatever one of these accepts at a bound."""
    if not boundaries:
        raise NothingToCalibrate
    first = boundaries[0]
    if isinstance(first, GuidedBoundary):
        guided = [each for each in boundaries if isinstance(each, GuidedBoundary)]
        return first.model_copy(
            update={
                "bounds": _largest([each.bounds for each in guided]),
                "infinity": max(each.infinity for each in guided),
                "mask_tolerance": max(each.mask_tolerance for each in guided),
                "ceiling_tolerance": max(each.ceiling_tolerance for each in guided),
            }
        )
    paper = [each for each in boundaries if isinstance(each, PaperBoundary)]
    return first.model_copy(
        update={
            "absolute": _largest([each.absolute for each in paper]),
            # A smaller factor is less strict.
            "relative": tuple(np.min([each.relative for each in paper], axis=0).tolist()),
            "infinity": max(each.infinity for each in paper),
        }
    )


def _largest(bounds: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(np.max(bounds, axis=0).tolist())
