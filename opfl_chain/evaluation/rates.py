"""How often a boundary rejects honest steps, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from opfl_chain.evaluation.binomial import upper_bound
from opfl_chain.evaluation.profiles import Profile
from opfl_chain.protocol.rules import Boundary

STAGES = ("first third", "second third", "last third")


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


def by_stage(steps: Sequence[int], run_length: int) -> dict[str, list[int]]:
    """Steps by the third of the training run that they are in."""
    stages: dict[str, list[int]] = {stage: [] for stage in STAGES}
    for t in steps:
        stages[STAGES[min(t * len(STAGES) // run_length, len(STAGES) - 1)]].append(t)
    return stages
