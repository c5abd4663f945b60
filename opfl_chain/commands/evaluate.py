"""`opfl evaluate`: how good the rules are."""

from __future__ import annotations

import json
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from opfl_chain.chain.files import write_atomically
from opfl_chain.commands import evaluate_lab
from opfl_chain.commands.options import JsonFile

evaluate = typer.Typer(help="Evaluate what honest and cheating clients meet.", no_args_is_help=True)

RUNS = [
    f"{model}-{dataset}"
    for model in ("lenet-61706", "lenet-431080")
    for dataset in ("mnist", "fashion-mnist")
]


class Rule(StrEnum):
    """Rules by name."""

    PAPER = "paper"
    GUIDED = "guided"


EVERY_RULE = list(Rule)


@evaluate.callback()
def main() -> None:
    """Evaluate what honest and cheating clients meet."""


@evaluate.command()
def boundary(
    records: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Recorded runs, in folders MODEL-DATASET.", file_okay=False
        ),
    ],
    json_file: JsonFile = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write tables and plots there.", file_okay=False),
    ] = None,
    only: Annotated[
        list[str], typer.Option(metavar="MODEL-DATASET", help="Runs to evaluate.")
    ] = RUNS,
    rule: Annotated[list[Rule], typer.Option(help="Rules to evaluate.")] = EVERY_RULE,
    calibration_steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="First steps of a run, that rules are calibrated on.",
            show_default="100, or 20 with --quick",
        ),
    ] = None,
    make: Annotated[
        bool, typer.Option("--make", help="Train and replay what is not recorded yet: for hours.")
    ] = False,
    threads: Annotated[
        bool, typer.Option("--threads", help="Replay in three threads, not three processes.")
    ] = False,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where data sets are.", file_okay=False)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="On few steps, for a first look.")] = False,
) -> None:
    """Show how often rules reject honest steps, and which cheats they see.

    A rule is calibrated on the first steps of a run, and judges the others.
    Records hold honest steps and their replays in MPC, so that rules can be
    compared without replaying.
    """
    from opfl_chain.calibration.progress import step_bars
    from opfl_chain.evaluation import recording
    from opfl_chain.evaluation.boundary_report import boundary_report, opened
    from opfl_chain.evaluation.evaluated import Extent
    from opfl_chain.evaluation.output import write_pages
    from opfl_chain.evaluation.records import RunName

    runs = [RunName.parse(name) for name in only]
    committees = recording.three_threads if threads else recording.three_processes
    extent = Extent.quick() if quick else Extent()
    if calibration_steps is not None:
        extent = replace(extent, calibration_steps=calibration_steps)
    with step_bars(Console(stderr=True)) as progress:
        for run in runs if make else ():
            plan = recording.plan_of(run, quick)
            recording.record(records, run, plan, rule, committees, progress, data_dir)
        evaluated = opened(records, runs, rule, extent, progress)
        report = boundary_report(evaluated, recording.replayed_by(committees), data_dir)
    Console().print(table_of(report["rows"]))
    if json_file is not None:
        write_atomically(json_file, json.dumps(report, indent=2) + "\n")
    if out is not None:
        write_pages(out, report, evaluated)


def table_of(rows: list[dict[str, Any]]) -> Table:
    table = Table(
        title="Honest steps rejected, and the smallest cheats that always are",
        caption="cheats relative to the norm of the gradient",
    )
    table.add_column("rule")
    table.add_column("run")
    for column in ("rejected", "95 %", "dense", "top 1 %"):
        table.add_column(column, justify="right")
    for row in rows:
        floors = (row[f"floor_{kind}_100"] for kind in ("dense", "top1pct"))
        table.add_row(
            row["rule"],
            f"{row['model']}-{row['dataset']}",
            f"{row['rejected']:,} of {row['honest_steps']:,}",
            f"< {row['frr_upper95']:.2%}",
            *("> 1" if floor is None else f"{floor:.1e}" for floor in floors),
        )
    return table


evaluate_lab.register(evaluate)
