"""`opfl calibrate`: from honest steps to a boundary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from opfl_chain.cli.options import JsonFile, write_json

if TYPE_CHECKING:
    from opfl_chain.lab.calibration.run import CalibrationPlan, CalibrationRun


def calibrate(
    model: Annotated[
        str | None,
        typer.Option(help="lenet-61706 or lenet-431080.", show_default="lenet-61706"),
    ] = None,
    dataset: Annotated[str, typer.Option(help="mnist, fashion-mnist or synthetic.")] = "mnist",
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Your own copy of the data set.", file_okay=False),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            help="guided, paper, proved, or the rule of a plug-in.", show_default="guided"
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="Kind of audits instead of a rule: plain, guided or proved."),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Examples in a step.", show_default="1")
    ] = None,
    steps: Annotated[int, typer.Option(help="Honest steps to calibrate on.")] = 100,
    held_out: Annotated[
        int, typer.Option(help="Further honest steps to test the boundary on.")
    ] = 0,
    spread: Annotated[
        bool,
        typer.Option("--spread/--first", help="Calibrate on steps of the whole run, or the first."),
    ] = False,
    training_steps: Annotated[
        int | None,
        typer.Option(metavar="N", help="Length of the run.", show_default="as short as possible"),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Safety factor of all bounds.",
            show_default="guided 8, paper 3, proved 3.5",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for records and results.", file_okay=False)
    ] = Path("runs/calibration"),
    policy_file: Annotated[
        Path | None,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="Train by this policy, not the default.",
            dir_okay=False,
        ),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Calibrate the boundary between an honest gradient and its replay.

    Trains a model honestly on public data, replays steps of it in MPC among
    three processes on this machine, and sets the boundary to the largest
    discrepancies, enlarged by a safety factor. Held-out steps show how often
    it rejects honest clients. Proved steps are not replayed: their advice
    implies a gradient, which is computed here. The report then shows how much
    of every bound steps of the run use.

    Writes policy.json and boundary.json, from which jobs are created, and
    boundary.png and report.md to DIR. Every step is recorded there at once:
    after Ctrl-C the same command resumes, and with more --steps or another
    --alpha it replays only the new steps.
    """
    from opfl_chain.cli.options import download_bars
    from opfl_chain.lab.calibration.report import alpha_for, write_result
    from opfl_chain.lab.calibration.run import (
        CalibrationPlan,
        CalibrationRun,
        policy_for,
        rule_chosen,
    )
    from opfl_chain.learning.data.datasets import load_dataset

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    plan = CalibrationPlan.of(steps, held_out, training_steps, spread)
    policy, judge = policy_for(model, rule_chosen(rule, kind), policy_file, batch)
    factor = alpha_for(judge, alpha)
    with download_bars(console) as progress:
        data = load_dataset(dataset, data_dir, progress=progress)
    run = CalibrationRun(policy, judge, data, out)
    record(run, plan, console)
    with console.status("calibrating"):
        report = write_result(run, plan, factor)
    results = Console(soft_wrap=True, highlight=False)
    results.print(report.sentence)
    results.print(f"{out}/boundary.json, boundary.png and report.md written")
    write_json(json_file, report.fields)


def record(run: CalibrationRun, plan: CalibrationPlan, console: Console) -> None:
    """Train and replay the missing steps; if interrupted, say how to resume."""
    from opfl_chain.cli.options import step_bars

    total = len(plan.kept)
    if recorded := run.recorded(plan):
        then = "resuming" if recorded < total else "nothing left to replay"
        console.print(f"{recorded:,} of {total:,} replays are already in {run.folder}: {then}")
    try:
        with step_bars(console) as progress:
            run.train(plan, progress)
            run.replay(plan, progress, console.print)
    except KeyboardInterrupt:
        recorded = run.recorded(plan)
        console.print(
            f"interrupted: {recorded:,} of {total:,} replays are in {run.folder};"
            " run the same command to resume"
        )
        raise
