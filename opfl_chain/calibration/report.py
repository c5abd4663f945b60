"""What a calibrated boundary does to honest steps that it has not seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from opfl_chain.calibration.boundaries import Observation, causes_of_rejection
from opfl_chain.evaluation.binomial import upper_bound
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.rules import Boundary


@dataclass(frozen=True)
class Trial:
    """A boundary put to honest steps, and why it rejected which of them."""

    steps: int
    rejections: dict[int, list[str]] = field(default_factory=dict)
    """By the number of the step."""

    @classmethod
    def of(cls, boundary: Boundary, observed: Iterable[tuple[int, Observation]]) -> Trial:
        causes = {t: causes_of_rejection(boundary, each) for t, each in observed}
        return cls(len(causes), {t: each for t, each in causes.items() if each})

    @property
    def rejected_by_cause(self) -> dict[str, int]:
        """How many steps were rejected for it; a step may be for several."""
        causes = Counter(cause for each in self.rejections.values() for cause in each)
        return dict(sorted(causes.items()))

    @property
    def upper95(self) -> float | None:
        """Of the rate of rejections, if anything was tried."""
        return upper_bound(len(self.rejections), self.steps) if self.steps else None

    @property
    def fields(self) -> dict[str, Any]:
        return {
            "honest_steps": self.steps,
            "rejected": len(self.rejections),
            "rejected_by_cause": self.rejected_by_cause,
            "frr": len(self.rejections) / self.steps if self.steps else None,
            "frr_upper95": self.upper95,
            "rejected_steps": [{"t": t, "causes": each} for t, each in self.rejections.items()],
        }


@dataclass(frozen=True)
class Report:
    """Of one calibration."""

    policy: Policy
    dataset: str
    boundary: Boundary
    alpha: float
    calibration_steps: tuple[int, ...]
    own: Trial
    """The calibration's own steps: inside by construction, for an alpha of 1 or more."""
    held_out: Trial

    @property
    def fields(self) -> dict[str, Any]:
        return {
            "rule": self.boundary.rule,
            "model": self.policy.model.name,
            "dataset": self.dataset,
            "policy_hash": "0x" + self.policy.hash.hex(),
            "boundary_hash": "0x" + self.boundary.hash.hex(),
            "alpha": self.alpha,
            "calibration": {
                "first": self.calibration_steps[0],
                "last": self.calibration_steps[-1],
                **self.own.fields,
            },
            "held_out": self.held_out.fields,
        }

    @property
    def sentence(self) -> str:
        """How many held-out steps were rejected, and what that says of others."""
        trial = self.held_out
        if trial.upper95 is None:
            return "No steps were held out, so nothing is known of others (--held-out)."
        return (
            f"{len(trial.rejections):,} of {trial.steps:,} held-out honest steps rejected: with"
            f" 95 % confidence, at most {trial.upper95:.2%} of such steps are."
        )

    @property
    def markdown(self) -> str:
        first, last = self.calibration_steps[0], self.calibration_steps[-1]
        fields = self.fields
        return "\n".join(
            [
                f"# Boundary of {self.policy.model.name} on {self.dataset}",
                "",
                self.sentence,
                "",
                "| | |",
                "|---|---|",
                f"| rule | {self.boundary.rule} |",
                f"| safety factor | {self.alpha:g} |",
                f"| calibrated on | {self.own.steps:,} steps, from {first:,} to {last:,} |",
                f"| of these outside | {len(self.own.rejections):,} |",
                f"| policy | `{fields['policy_hash']}` |",
                f"| boundary | `{fields['boundary_hash']}` |",
                *_causes(self.held_out),
                "",
                "![Median, range and bound](boundary.png)",
                "",
            ]
        )


def _causes(trial: Trial) -> list[str]:
    """Nothing, if there were no rejections."""
    if not trial.rejections:
        return []
    rows = [f"| {cause} | {count:,} |" for cause, count in trial.rejected_by_cause.items()]
    steps = ", ".join(f"{t:,}" for t in trial.rejections)
    return [
        "",
        "| cause | steps rejected |",
        "|---|--:|",
        *rows,
        "",
        f"A step may be rejected for several causes. Rejected: {steps}.",
    ]
