"""`opfl evaluate` of attacks, costs and deterrence: one command for each table, and one for all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console
from rich.markdown import Markdown

Out: TypeAlias = Annotated[
    Path, typer.Option(metavar="DIR", help="Results: JSON, Markdown and PNG.", file_okay=False)
]
Records: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Recorded runs, in folders MODEL-DATASET.", file_okay=False),
]
Only: TypeAlias = Annotated[
    list[str] | None, typer.Option(metavar="MODEL-DATASET", help="Runs; attacks take the first.")
]
Make: TypeAlias = Annotated[
    bool, typer.Option("--make", help="Train and replay what is not recorded yet.")
]
Threads: TypeAlias = Annotated[
    bool, typer.Option("--threads", help="Replay in three threads, not three processes.")
]
DataDir: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Where data sets are.", file_okay=False)
]
Quick: TypeAlias = Annotated[
    bool, typer.Option("--quick", help="Few steps, in minutes; results say that they are quick.")
]


def register(evaluate: typer.Typer) -> None:
    """Add the commands of the lab."""
    for name, summary in SUMMARIES.items():
        evaluate.command(name, help=summary)(_command(name))
    evaluate.command("page")(page)


SUMMARIES = {
    "general-attacks": "Reuse, reverse, label flip, amplify and more: who accepts them.",
    "adaptive-pgd": "White-box attackers that descend on the verifier's penalty.",
    "tail-pgd": "The same on few coordinates, against the paper's grids.",
    "drift": "What a client gains that stays within the boundary for a thousand rounds.",
    "cost": "Five clients, a thousand rounds: full MPC and OPFL, everything included.",
    "deterrence": "Detection in simulated jobs, and what each cheat earns.",
    "all": "All of these, as far as they are not in the folder yet.",
}


def _command(name: str):  # type: ignore[no-untyped-def]
    def command(
        out: Out,
        records: Records = None,
        only: Only = None,
        make: Make = False,
        threads: Threads = False,
        data_dir: DataDir = None,
        quick: Quick = False,
    ) -> None:
        run(name, out, records, only, make, threads, data_dir, quick)

    return command


def run(
    name: str,
    out: Path,
    records: Path | None,
    only: list[str] | None,
    make: bool,
    threads: bool,
    data_dir: Path | None,
    quick: bool,
) -> None:
    """Compute what is missing, and show the tables."""
    from dataclasses import replace

    from opfl_chain.calibration.progress import step_bars
    from opfl_chain.evaluation import recording
    from opfl_chain.evaluation.lab.lab import WITHOUT_RECORDS, Lab, chosen
    from opfl_chain.evaluation.lab.pages import write_result
    from opfl_chain.evaluation.lab.results import Results
    from opfl_chain.evaluation.lab.settings import LabSettings

    settings = LabSettings.quickly() if quick else LabSettings()
    if only:
        settings = replace(settings, runs=tuple(only))
    committees = recording.three_threads if threads else recording.three_processes
    with step_bars(Console(stderr=True)) as progress:
        lab = Lab(settings, Results(out), records, committees, progress, data_dir)
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
    to: Annotated[Path, typer.Option(metavar="FILE", help="The page.", dir_okay=False)],
) -> None:
    """Make one page of all results in a folder, as docs/EVALUATION.md is made."""
    from opfl_chain.evaluation.lab.pages import write_page
    from opfl_chain.evaluation.lab.results import Results

    write_page(Results(results), to)
