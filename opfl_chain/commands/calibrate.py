"""`opfl calibrate`: from honest steps to a boundary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from opfl_chain.chain.files import write_atomically
from opfl_chain.commands.options import JsonFile

if TYPE_CHECKING:
    from opfl_chain.calibration.plan import Plan
    from opfl_chain.calibration.run import CalibrationRun


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
        Literal["guided", "paper"] | None,
        typer.Option(help="Which kind of boundary.", show_default="guided"),
    ] = None,
    steps: Annotated[int, typer.Option(help="Honest steps to calibrate on.")] = 100,
    held_out: Annotated[int, typer.Option(help="Other honest steps to try the boundary on.")] = 0,
    spread: Annotated[
        bool,
        typer.Option("--spread/--first", help="Calibrate on steps of the whole run, or its first."),
    ] = False,
    training_steps: Annotated[
        int | None,
        typer.Option(metavar="N", help="Length of the run.", show_default="as short as can be"),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="Safety factor of all bounds.", show_default="guided 8, paper 3"
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where records and results go.", file_okay=False)
    ] = Path("runs/calibration"),
    policy_file: Annotated[
        Path | None,
        typer.Option(
            "--policy", metavar="FILE", help="Train by this policy, not a default.", dir_okay=False
        ),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Find how far an honest client's gradient may be from its replay.

    Trains a model honestly on public data, replays steps of it in MPC among
    three processes of this machine, and makes a boundary of how far they are
    apart at most, enlarged by a safety factor. Held-out steps show how often
    it rejects honest clients.

    DIR gets policy.json and boundary.json, which a job is created with,
    boundary.png and report.md. Every step is recorded there at once: after
    Ctrl-C the same command goes on where it was, and with more --steps or
    another --alpha it replays only what is new.
    """
    from opfl_chain.calibration.plan import Plan
    from opfl_chain.calibration.policies import policy_for
    from opfl_chain.calibration.result import alpha_for, write_result
    from opfl_chain.calibration.run import CalibrationRun, rule_of
    from opfl_chain.training.datasets import load_dataset
    from opfl_chain.training.progress import download_bars

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    plan = Plan.of(steps, held_out, training_steps, spread)
    policy = policy_for(model, rule, policy_file)
    factor = alpha_for(rule_of(policy), alpha)
    with download_bars(console) as progress:
        data = load_dataset(dataset, data_dir, progress=progress)
    run = CalibrationRun(policy, data, out)
    record(run, plan, console)
    with console.status("calibrating"):
        report = write_result(run, plan, factor)
    results = Console(soft_wrap=True, highlight=False)
    results.print(report.sentence)
    results.print(f"{out}/boundary.json, boundary.png and report.md written")
    if json_file is not None:
        write_atomically(json_file, json.dumps(report.fields, indent=2) + "\n")


def record(run: CalibrationRun, plan: Plan, console: Console) -> None:
    """Train and replay what is missing, and say how to go on if somebody ends it."""
    from opfl_chain.calibration.progress import step_bars

    total = len(plan.kept)
    if recorded := run.recorded(plan):
        then = "going on" if recorded < total else "nothing is left to replay"
        console.print(f"{recorded:,} of {total:,} replays are in {run.folder} already: {then}")
    try:
        with step_bars(console) as progress:
            run.train(plan, progress)
            run.replay(plan, progress, console.print)
    except KeyboardInterrupt:
        recorded = run.recorded(plan)
        console.print(
            f"interrupted: {recorded:,} of {total:,} replays are in {run.folder},"
            " and the same command goes on from there"
        )
        raise
