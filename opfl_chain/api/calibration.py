"""The boundary of a policy, calibrated on honest steps."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from opfl_chain.api import Progress, silent
from opfl_chain.lab.calibration.report import CalibrationReport, alpha_for, calibrated
from opfl_chain.lab.calibration.run import CalibrationPlan, CalibrationRun
from opfl_chain.learning.data.datasets import load_dataset
from opfl_chain.learning.data.examples import Dataset
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.registry import rule_for

Calibration = CalibrationReport


def calibrate(
    policy: Policy | str,
    dataset: Dataset | str = "mnist",
    *,
    steps: int = 100,
    held_out: int = 0,
    spread: bool = False,
    training_steps: int | None = None,
    alpha: float | None = None,
    folder: Path | str | None = None,
    progress: Progress = silent,
) -> Calibration:
    """Calibrate the boundary between an honest gradient and its replay.

    Trains a model honestly, replays steps of it in MPC among three processes on this machine, and
    sets the boundary to the largest discrepancies, enlarged by the safety factor `alpha` (by
    default that of the rule). `held_out` further steps show how often it rejects honest clients.

    `policy` may be the name of a model, for its default policy. Steps are the first of a run of
    `training_steps`, or with `spread` from all of it. If `folder` is given, steps are recorded
    there, and a second call replays only those that are missing.
    """
    if isinstance(policy, str):
        policy = default_policy(policy)
    if isinstance(dataset, str):
        dataset = load_dataset(dataset)
    plan = CalibrationPlan.of(steps, held_out, training_steps, spread)
    rule = rule_for(policy)
    factor = alpha_for(rule, alpha)
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="opfl-calibration-"))
        run = CalibrationRun(policy, rule, dataset, Path(folder))
        run.train(plan, progress)
        run.replay(plan, progress, notice=lambda text: progress(text, 0, len(plan.kept)))
        return calibrated(run, plan, factor)
