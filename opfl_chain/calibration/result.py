"""From the records of a run to the files that it is made for."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from opfl_chain.calibration.boundaries import (
    GUIDED_ALPHA,
    PAPER_ALPHA,
    Observation,
    calibrated_guided_boundary,
    calibrated_paper_boundary,
)
from opfl_chain.calibration.errors import PlanInvalid
from opfl_chain.calibration.plan import Plan
from opfl_chain.calibration.plot import draw
from opfl_chain.calibration.report import Report, Trial
from opfl_chain.calibration.run import CalibrationRun
from opfl_chain.chain.files import write_atomically
from opfl_chain.protocol.rules import Boundary

_ALPHA = {"guided": GUIDED_ALPHA, "paper": PAPER_ALPHA}


def alpha_for(rule: str, alpha: float | None) -> float:
    """The safety factor that was asked for, or the usual one of the rule."""
    chosen = _ALPHA[rule] if alpha is None else alpha
    if not (math.isfinite(chosen) and chosen > 0):
        raise PlanInvalid(f"--alpha is {chosen}, it must be a finite number above 0")
    return chosen


def write_result(run: CalibrationRun, plan: Plan, alpha: float) -> Report:
    """Calibrate, try the boundary on what was held out, and write everything but the records."""
    observations = list(run.observations(plan.calibration))
    boundary = _calibrated(run, observations, alpha)
    held_out = zip(plan.held_out, run.observations(plan.held_out), strict=True)
    report = Report(
        run.policy,
        run.dataset.name,
        boundary,
        alpha,
        plan.calibration,
        Trial.of(boundary, zip(plan.calibration, observations, strict=True)),
        Trial.of(boundary, held_out),
    )
    draw(boundary, plan.calibration, observations, run.folder / "boundary.png")
    write_atomically(run.folder / "policy.json", run.policy.canonical_json.decode())
    write_atomically(run.folder / "report.md", report.markdown)
    write_atomically(run.folder / "report.json", json.dumps(report.fields, indent=2) + "\n")
    write_atomically(run.folder / "boundary.json", boundary.canonical_json.decode())
    return report


def _calibrated(run: CalibrationRun, observations: Sequence[Observation], alpha: float) -> Boundary:
    if run.rule == "guided":
        return calibrated_guided_boundary(run.policy, observations, alpha)
    return calibrated_paper_boundary(run.policy, observations, alpha)
