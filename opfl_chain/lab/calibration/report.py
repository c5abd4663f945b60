"""The files of a calibration: boundary, report and plot."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from opfl_chain.lab.calibration.proving import BOUNDS, StepProver, tolerance_of
from opfl_chain.lab.calibration.run import CalibrationPlan, CalibrationRun, evenly
from opfl_chain.lab.errors import PlanInvalid
from opfl_chain.lab.statistics import upper_bound
from opfl_chain.protocol.policy import Policy
from opfl_chain.render.plots import BLUE, GREY, ORANGE, add_legend, dress, new_figure, save
from opfl_chain.render.text import markdown_table
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.evidence import Observation, QuantilePanel, RunSeries
from opfl_chain.rules.registry import rule_of
from opfl_chain.rules.rule import AnyRule
from opfl_chain.system.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_HONEST, _BOUND, _QUIET = BLUE, ORANGE, GREY
_TAIL = 950
"""Every quantile above it is labelled: these are close together and decide most verdicts."""


def draw(
    boundary: Boundary, steps: Sequence[int], observations: Sequence[Observation], path: Path
) -> None:
    """Plot the quantiles of honest steps and their bound into a PNG file."""
    rule, policy = rule_of(boundary), observations[0].policy
    profiles = [rule.profile(each) for each in observations]
    panels = rule.panels(boundary, policy, profiles)
    tolerance = rule.mask_tolerance(boundary)
    series = None if panels else rule.largest_of_steps(boundary, profiles)
    columns = len(panels) + (tolerance is not None) + (series is not None)
    figure, all_axes = new_figure(10.4, 4.2, columns=columns)
    if series is not None:
        _draw_series(all_axes[0], steps, series)
    for axes, panel in zip(all_axes, panels, strict=False):
        _draw_quantiles(axes, policy.quantile_grid, panel)
        axes.set_title(panel.title)
    if tolerance is not None:
        _draw_advice(all_axes[-1], tolerance, steps, observations)
    for axes in all_axes:
        dress(axes)
        axes.set_ylim(bottom=0)
        add_legend(axes, size=9)
    save(figure, path)


def _draw_series(axes: Axes, steps: Sequence[int], series: RunSeries) -> None:
    axes.scatter(steps, series.steps, s=12, color=_HONEST, label="steps")
    axes.axhline(series.bound, color=_BOUND, linewidth=2, label="bound")
    axes.set_xlabel("training step")
    axes.set_ylabel(series.unit)
    axes.set_title(series.title)


def _draw_advice(
    axes: Axes,
    mask_tolerance: int,
    steps: Sequence[int],
    observations: Sequence[Observation],
) -> None:
    replays = [each.replay for each in observations]
    of_activations = [each.activation_error for each in replays]
    over = [max(each.wrong_side, each.over_ceiling) for each in replays]
    axes.scatter(steps, of_activations, s=12, color=_HONEST, label="error of activations")
    axes.scatter(
        steps, over, s=12, color=_QUIET, marker="x", label="beyond a mask or ceiling", clip_on=False
    )
    axes.axhline(mask_tolerance, color=_BOUND, linewidth=2, label="tolerance")
    axes.set_yscale("symlog", linthresh=1)
    axes.set_xlabel("training step")
    axes.set_title("Deviation from the advice, in quanta")


def _draw_quantiles(axes: Axes, grid: Sequence[int], panel: QuantilePanel) -> None:
    """Plot on a logarithmic axis, linear below the resolution: many quantiles are exactly zero."""
    places = np.arange(len(grid))
    lowest, highest = panel.steps.min(axis=0), panel.steps.max(axis=0)
    axes.fill_between(places, lowest, highest, color=_HONEST, alpha=0.2, label="range")
    median = np.median(panel.steps, axis=0)
    axes.plot(places, median, color=_HONEST, linewidth=2, label="median", clip_on=False)
    if panel.bounds is not None:
        axes.plot(places, panel.bounds, color=_BOUND, linewidth=2, label="bound")
    if panel.guard is not None:
        label = "bound of the largest"
        axes.axhline(panel.guard, color=_BOUND, linewidth=1, linestyle="--", label=label)
    axes.set_yscale("symlog", linthresh=panel.resolution)
    shown = [place for place in places if place % 4 == 2 or grid[place] > _TAIL]
    axes.set_xticks(shown, [f"{grid[place] / 1000:g}" for place in shown], fontsize=8)
    axes.set_xlabel("quantile of the coordinates")


@dataclass(frozen=True)
class Trial:
    """A boundary tested on honest steps, with the causes of its rejections."""

    steps: int
    rejections: dict[int, list[str]] = field(default_factory=dict)
    """Causes by step number."""

    @classmethod
    def of(cls, boundary: Boundary, observed: Iterable[tuple[int, Observation]]) -> Trial:
        rule = rule_of(boundary)
        causes = {t: rule.causes(boundary, each) for t, each in observed}
        return cls(len(causes), {t: each for t, each in causes.items() if each})

    @property
    def rejected_by_cause(self) -> dict[str, int]:
        """The number of rejected steps by cause; a step may have several causes."""
        causes = Counter(cause for each in self.rejections.values() for cause in each)
        return dict(sorted(causes.items()))

    @property
    def upper95(self) -> float | None:
        """Upper 95 % bound of the rejection rate, None if no steps were tested."""
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
class CalibrationReport:
    """The report of one calibration."""

    policy: Policy
    dataset: str
    boundary: Boundary
    alpha: float
    calibration_steps: tuple[int, ...]
    own: Trial
    """The steps calibrated on: accepted by construction if alpha is at least 1."""
    held_out: Trial
    used: Mapping[str, float] = field(default_factory=dict)
    """The largest used part of every bound of a proof; empty if steps are replayed."""

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
            **({"largest_use_of_bounds": dict(self.used)} if self.used else {}),
        }

    @property
    def sentence(self) -> str:
        """The number of rejected held-out steps, and the bound it implies for other steps."""
        trial = self.held_out
        if trial.upper95 is None:
            return (
                "No steps were held out, so the rejection rate of others is unknown (--held-out)."
            )
        return (
            f"{len(trial.rejections):,} of {trial.steps:,} held-out honest steps rejected: with"
            f" 95 % confidence, at most {trial.upper95:.2%} of such steps are."
        )

    @property
    def markdown(self) -> str:
        first, last = self.calibration_steps[0], self.calibration_steps[-1]
        facts = {
            "rule": self.boundary.rule,
            "safety factor": f"{self.alpha:g}",
            "calibrated on": f"{self.own.steps:,} steps, from {first:,} to {last:,}",
            "of these outside": f"{len(self.own.rejections):,}",
            "policy": f"`{self.fields['policy_hash']}`",
            "boundary": f"`{self.fields['boundary_hash']}`",
        }
        for name, used in self.used.items():
            facts[f"largest use of bound: {name}"] = f"{used:.0%}"
        return "\n".join(
            [
                f"# Boundary of {self.policy.model.name} on {self.dataset}",
                "",
                self.sentence,
                "",
                markdown_table(("", ""), facts.items(), tight=True),
                *_causes(self.held_out),
                "",
                "![Median, range and bound](boundary.png)",
                "",
            ]
        )


def _causes(trial: Trial) -> list[str]:
    """Return the table of rejections by cause, empty if there were none."""
    if not trial.rejections:
        return []
    rows = [(cause, f"{count:,}") for cause, count in trial.rejected_by_cause.items()]
    steps = ", ".join(f"{t:,}" for t in trial.rejections)
    return [
        "",
        markdown_table(("cause", ">steps rejected"), rows, tight=True),
        "",
        f"A step may be rejected for several causes. Rejected: {steps}.",
    ]


def alpha_for(rule: AnyRule, alpha: float | None) -> float:
    """Return the requested safety factor, or the default of the rule."""
    chosen = rule.alpha if alpha is None else alpha
    if not (math.isfinite(chosen) and chosen > 0):
        raise PlanInvalid(f"--alpha is {chosen}, it must be a finite number above 0")
    return chosen


def calibrated(run: CalibrationRun, plan: CalibrationPlan, alpha: float) -> CalibrationReport:
    """Calibrate on recorded steps, and test the boundary on held-out ones."""
    observations = list(run.observations(plan.calibration))
    boundary: Boundary = run.rule.calibrate(run.policy, observations, alpha)
    held_out = zip(plan.held_out, run.observations(plan.held_out), strict=True)
    return CalibrationReport(
        run.policy,
        run.dataset.name,
        boundary,
        alpha,
        plan.calibration,
        Trial.of(boundary, zip(plan.calibration, observations, strict=True)),
        Trial.of(boundary, held_out),
        used_bounds(run, boundary, plan),
    )


REHEARSED: Final = 20
"""The number of steps that a calibration evaluates with the coins of a proof."""


def used_bounds(
    run: CalibrationRun, boundary: Boundary, plan: CalibrationPlan
) -> Mapping[str, float]:
    """Return the largest part of every bound that steps of the run use, if clients prove them."""
    if run.policy.proof is None:
        return {}
    prover = StepProver(run.policy, tolerance_of(boundary))
    steps = evenly(plan.kept, min(REHEARSED, len(plan.kept)))
    found = [prover.used(run.store.load_step(t)) for t in steps]
    return {name: max(each[name] for each in found) for name in BOUNDS}


def write_result(run: CalibrationRun, plan: CalibrationPlan, alpha: float) -> CalibrationReport:
    """Calibrate, test the boundary on held-out steps, and write all files but the records."""
    report = calibrated(run, plan, alpha)
    observations = list(run.observations(plan.calibration))
    draw(report.boundary, plan.calibration, observations, run.folder / "boundary.png")
    write_atomically(run.folder / "policy.json", run.policy.canonical_json.decode())
    write_atomically(run.folder / "report.md", report.markdown)
    write_atomically(run.folder / "report.json", json.dumps(report.fields, indent=2) + "\n")
    write_atomically(run.folder / "boundary.json", report.boundary.canonical_json.decode())
    return report
