"""`opfl evaluate`: evaluation of the rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from opfl_chain.cli.options import JsonFile, write_json
from opfl_chain.render.text import terminal_table

evaluate = typer.Typer(help="Evaluate rules on honest and cheating clients.", no_args_is_help=True)

RUNS = [
    f"{model}-{dataset}"
    for model in ("lenet-61706", "lenet-431080")
    for dataset in ("mnist", "fashion-mnist")
]
PROVED_RUNS = [*RUNS, *(f"{run}-batch8" for run in RUNS)]
Out: TypeAlias = Annotated[
    Path, typer.Option(metavar="DIR", help="Folder for JSON, Markdown and PNG.", file_okay=False)
]
Records: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Recorded runs, in folders MODEL-DATASET.", file_okay=False),
]
Only: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="MODEL-DATASET", help="Runs to evaluate; attacks use the first."),
]
Make: TypeAlias = Annotated[bool, typer.Option("--make", help="Train and replay missing records.")]
Threads: TypeAlias = Annotated[
    bool, typer.Option("--threads", help="Replay in three threads, not three processes.")
]
DataDir: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder of data sets.", file_okay=False)
]
OfRules: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        help="Rules of OPFL; stored tables of adaptive attacks get the rows that they lack.",
        show_default="paper, guided and proved",
    ),
]
Quick: TypeAlias = Annotated[
    bool, typer.Option("--quick", help="Use few steps; takes minutes. Results are marked as quick.")
]
SUMMARIES = {
    "general-attacks": "Reuse, reverse, label flip, amplify and more: acceptance by each verifier.",
    "adaptive-pgd": "White-box attackers that descend on the verifier's penalty.",
    "tail-pgd": "White-box attackers on few coordinates, against the paper's grids.",
    "drift": "Gain of a client that stays within the boundary for a thousand rounds.",
    "cost": "Cost of five clients over a thousand rounds: full MPC and OPFL, everything included.",
    "deterrence": "Detection in simulated jobs, and the gain of each cheat.",
    "all": "All of these that are not in the folder yet.",
}


@evaluate.callback()
def main() -> None:
    """Evaluate rules on honest and cheating clients."""


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
        typer.Option(metavar="DIR", help="Folder for tables and plots.", file_okay=False),
    ] = None,
    only: Annotated[
        list[str], typer.Option(metavar="MODEL-DATASET", help="Runs to evaluate.")
    ] = RUNS,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            help="Rules to evaluate, of this package or of plug-ins.",
            show_default="paper, guided and proved",
        ),
    ] = None,
    calibration_steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of first steps of a run that rules are calibrated on.",
            show_default="100, or 20 with --quick",
        ),
    ] = None,
    sampled: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of steps of a run to perturb, and to run in other environments.",
            show_default="200, or 12 with --quick",
        ),
    ] = None,
    make: Annotated[
        bool, typer.Option("--make", help="Train and replay missing records; takes hours.")
    ] = False,
    kept: Annotated[
        tuple[int, int, int] | None,
        typer.Option(
            metavar="LENGTH FIRST SPREAD",
            help="With --make: the length of a run, and how many steps of it to keep.",
            show_default="those of the published evaluation",
        ),
    ] = None,
    threads: Annotated[
        bool, typer.Option("--threads", help="Replay in three threads, not three processes.")
    ] = False,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of data sets.", file_okay=False)
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use few steps, for a first look.")
    ] = False,
) -> None:
    """Show how often rules reject honest steps, and which cheats they detect.

    A rule is calibrated on the first steps of a run, and judges the others.
    Records hold honest steps and their replays in MPC, so rules are compared
    without replaying.
    """
    from opfl_chain.cli.options import step_bars
    from opfl_chain.lab.boundary import recording
    from opfl_chain.lab.boundary.evaluated import Extent
    from opfl_chain.lab.boundary.pages import write_pages
    from opfl_chain.lab.boundary.records import RunName
    from opfl_chain.lab.boundary.report import boundary_report, opened
    from opfl_chain.rules.registry import BUILTIN_RULES, rule_named

    runs = [RunName.parse(name) for name in only]
    rules = [rule_named(name) for name in rule] if rule else BUILTIN_RULES
    committees = recording.three_threads if threads else recording.three_processes
    extent = Extent.quick() if quick else Extent()
    if calibration_steps is not None:
        extent = replace(extent, calibration_steps=calibration_steps)
    if sampled is not None:
        extent = replace(extent, floor_steps=sampled, environment_steps=sampled)
    with step_bars(Console(stderr=True)) as progress:
        for run in runs if make else ():
            plan = recording.plan_of(run, rules, quick)
            if kept is not None:
                plan = recording.RecordingPlan(*kept, compared_first=kept[1], compared_every=1)
            recording.record(records, run, plan, rules, committees, progress, data_dir)
        evaluated = opened(records, runs, rules, extent, progress)
        report = boundary_report(evaluated, recording.replayed_by(committees), data_dir)
    Console().print(table_of(report["rows"]))
    write_json(json_file, report)
    if out is not None:
        write_pages(out, report, evaluated)


@evaluate.command()
def headroom(
    json_file: JsonFile = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Markdown file for the table.", dir_okay=False),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL-DATASET[-batchN]",
            help="Runs to judge.",
            show_default="both models and data sets, batches of 1 and 8",
        ),
    ] = None,
    variation: Annotated[
        list[str] | None,
        typer.Option(help="Ways of training, or `all`.", show_default="default"),
    ] = None,
    rule: Annotated[str, typer.Option(help="Rule of proved steps.")] = "proved",
    training_steps: Annotated[int, typer.Option(min=2, help="Length of every run.")] = 10_000,
    steps: Annotated[int, typer.Option(min=1, help="Steps of a run to judge.")] = 5_000,
    proofs: Annotated[int, typer.Option(min=0, help="How many of them to prove.")] = 200,
    calibration_steps: Annotated[
        int, typer.Option(min=1, help="First steps of a run, to calibrate on.")
    ] = 100,
    data_dir: DataDir = None,
    quick: Quick = False,
) -> None:
    """Show which honest steps would fail, and how much of every bound they use.

    For rules whose clients prove their steps. The boundary is calibrated on
    the first steps of a run with default settings; others of it, and of runs
    with other seeds, optimizers and learning rates, are evaluated in the clear
    with fresh coins. Some are proved, and answered for all components.

    Rows in the JSON file that are of the same run, size and statement are not
    made again. A change of what proofs state makes them anew.
    An interrupted run has a row of the steps that were judged until then.
    """
    import json

    from opfl_chain.cli.options import step_bars
    from opfl_chain.lab.boundary.headroom import VARIATIONS, HeadroomPlan, headroom_rows, others
    from opfl_chain.lab.boundary.headroom import table_of as headroom_table
    from opfl_chain.lab.boundary.records import RunName
    from opfl_chain.learning.data.datasets import load_dataset
    from opfl_chain.rules.registry import rule_named
    from opfl_chain.system.files import write_atomically

    plan = HeadroomPlan(training_steps, steps, proofs, calibration_steps)
    plan = HeadroomPlan.quick() if quick else plan
    names = list(VARIATIONS) if variation == ["all"] else variation or ["default"]
    chosen = only or PROVED_RUNS
    known = []
    if json_file is not None and json_file.exists():
        known = json.loads(json_file.read_text(encoding="utf-8"))["rows"]
    rows: list[dict[str, Any]] = []
    with step_bars(Console(stderr=True)) as progress:
        runs, judge = [RunName.parse(name) for name in chosen], rule_named(rule)
        found = headroom_rows(
            runs, judge, names, plan, known, lambda name: load_dataset(name, data_dir), progress
        )
        for row in found:
            rows.append(row)
            write_json(json_file, {"rows": [*rows, *others(known, rows)]})
    table = headroom_table(rows)
    Console().print(Markdown(table))
    if out is not None:
        write_atomically(out, table + "\n")


@evaluate.command()
def slack(
    json_file: JsonFile = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Markdown file for the table.", dir_okay=False),
    ] = None,
    only: Annotated[
        list[str], typer.Option(metavar="MODEL-DATASET[-batchN]", help="Runs to attack.")
    ] = PROVED_RUNS,
    rule: Annotated[str, typer.Option(help="Rule of proved steps.")] = "proved",
    training_steps: Annotated[int, typer.Option(min=2, help="Length of every run.")] = 4_000,
    steps: Annotated[int, typer.Option(min=0, help="Steps of a run to attack.")] = 20,
    sides: Annotated[
        int, typer.Option(min=0, help="Steps of a run on which to take the other side of a ReLU.")
    ] = 200,
    calibration_steps: Annotated[
        int, typer.Option(min=1, help="First steps of a run, to calibrate on.")
    ] = 100,
    data_dir: DataDir = None,
    quick: Quick = False,
) -> None:
    """Show how far cheats move a gradient with all that a proof leaves open.

    Residuals of all layers in the direction that moves the gradient most, by
    power iteration; both tolerances, at the honest and at the lowest lift.
    Moves are relative to the norm of the gradient. A real cheat along the best
    direction shows from which part of the bound on it is seen. Another one, on
    the steps of `--sides`, takes the other side of the ReLU nearest to zero:
    proofs leave no choice there, and coins see it.

    Rows of other runs in the JSON file are kept.
    """
    import json

    from opfl_chain.cli.options import step_bars
    from opfl_chain.lab.boundary.headroom import HeadroomPlan
    from opfl_chain.lab.boundary.records import RunName
    from opfl_chain.lab.boundary.side_choice import side_row, sides_table
    from opfl_chain.lab.boundary.slack_attack import slack_row, slack_table
    from opfl_chain.learning.data.datasets import load_dataset
    from opfl_chain.rules.registry import rule_named
    from opfl_chain.system.files import write_atomically

    plan = HeadroomPlan(training_steps, steps, 0, calibration_steps)
    plan, sides = (HeadroomPlan(24, 2, 0, 20), 2) if quick else (plan, sides)
    found: dict[str, list[dict[str, Any]]] = {"rows": [], "sides": []}
    if json_file is not None and json_file.exists():
        found |= json.loads(json_file.read_text(encoding="utf-8"))
    judge, length, first = rule_named(rule), plan.training_steps, plan.calibration_steps

    def keep(name: str, made: dict[str, Any]) -> None:
        found[name] = [*(row for row in found[name] if row["run"] != made["run"]), made]
        write_json(json_file, found)

    with step_bars(Console(stderr=True)) as progress:
        for run in map(RunName.parse, only):
            data = load_dataset(run.dataset, data_dir)
            if plan.judged:
                keep("rows", slack_row(run, judge, data, plan, progress=progress))
            if sides:
                keep("sides", side_row(run, judge, data, length, first, sides, progress))
    table = slack_table(found["rows"]) + "\n\n" + sides_table(found["sides"])
    Console().print(Markdown(table))
    if out is not None:
        write_atomically(out, table + "\n")


def table_of(rows: list[dict[str, Any]]) -> Table:
    """Lay out rejections and detection floors for the terminal."""
    return terminal_table(
        ("rule", "run", ">rejected", ">95 %", ">dense", ">top 1 %"),
        (
            (
                row["rule"],
                f"{row['model']}-{row['dataset']}"
                + (f"-batch{row['batch_size']}" if row["batch_size"] > 1 else ""),
                f"{row['rejected']:,} of {row['honest_steps']:,}",
                f"< {row['frr_upper95']:.2%}",
                *(_floor(row[f"floor_{kind}_100"]) for kind in ("dense", "top1pct")),
            )
            for row in rows
        ),
        title="Honest steps rejected, and the smallest cheats that always are",
        caption="cheats relative to the norm of the gradient",
    )


def _floor(size: float | None) -> str:
    return "> 1" if size is None else f"{size:.1e}"


def register(evaluate: typer.Typer) -> None:
    """Add the commands of the lab."""
    for name, summary in SUMMARIES.items():
        evaluate.command(name, help=summary)(_command(name))
    evaluate.command("page")(page)


def _command(name: str):  # type: ignore[no-untyped-def]
    def command(
        out: Out,
        records: Records = None,
        only: Only = None,
        make: Make = False,
        threads: Threads = False,
        rule: OfRules = None,
        data_dir: DataDir = None,
        quick: Quick = False,
    ) -> None:
        run(name, out, records, only, make, threads, rule, data_dir, quick)

    return command


def run(
    name: str,
    out: Path,
    records: Path | None,
    only: list[str] | None,
    make: bool,
    threads: bool,
    rules: list[str] | None,
    data_dir: Path | None,
    quick: bool,
) -> None:
    """Compute missing results, and show the tables."""
    from dataclasses import replace

    from opfl_chain.cli.options import step_bars
    from opfl_chain.lab.boundary import recording
    from opfl_chain.paper.lab import WITHOUT_RECORDS, Lab, chosen
    from opfl_chain.paper.pages import write_result
    from opfl_chain.paper.results import LabSettings, Results
    from opfl_chain.rules.registry import BUILTIN_RULES, rule_named

    settings = LabSettings.quickly() if quick else LabSettings()
    if only:
        settings = replace(settings, runs=tuple(only))
    committees = recording.three_threads if threads else recording.three_processes
    with step_bars(Console(stderr=True)) as progress:
        judges = [rule_named(each) for each in rules] if rules else BUILTIN_RULES
        lab = Lab(settings, Results(out), records, committees, progress, data_dir, judges)
        names = chosen(name)
        if make and not set(names) <= set(WITHOUT_RECORDS):
            lab.make_records()
        written = [write_result(out, lab.evaluate(each)) for each in names]
    for text in written:
        Console().print(Markdown(text))


def page(
    results: Annotated[
        Path, typer.Option(metavar="DIR", help="Results of `evaluate all`.", file_okay=False)
    ],
    to: Annotated[Path, typer.Option(metavar="FILE", help="Page to write.", dir_okay=False)],
) -> None:
    """Write one page of all results in a folder, such as docs/EVALUATION.md."""
    from opfl_chain.paper.pages import write_page
    from opfl_chain.paper.results import Results

    write_page(Results(results), to)


register(evaluate)
