"""`opfl trail`: export and verification of the audit trail of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console
from rich.table import Table

from opfl_chain.chain.deployment import Deployment
from opfl_chain.chain.rpc import Rpc
from opfl_chain.cli.options import JsonFile, write_json
from opfl_chain.render.text import light_table
from opfl_chain.trail import (
    Report,
    Trail,
    check_export,
    check_published,
    check_trail,
    read_trail,
    write_export,
)
from opfl_chain.trail.canonical import trail_document

trail = typer.Typer(help="The audit trail of a job, from the chain alone.", no_args_is_help=True)

RpcUrl: TypeAlias = Annotated[str, typer.Option(metavar="URL", help="RPC address of a node.")]
DeploymentFile: TypeAlias = Annotated[
    Path,
    typer.Option(metavar="FILE", help="File written by `opfl deploy`.", dir_okay=False),
]
Job: TypeAlias = Annotated[
    int, typer.Option(min=1, max=2**64 - 1, metavar="N", help="Number of the job.")
]


@trail.command()
def export(
    rpc_url: RpcUrl,
    job: Job,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Target folder.", file_okay=False)],
    deployment: DeploymentFile = Path("deployment.json"),
    json_file: JsonFile = None,
) -> None:
    """Export every event of a job as JSON, as CSV, and as HTML pages.

    Writes trail.json, trail.csv, index.html and a page for each round to DIR.
    The digest in trail.json is the keccak256 of its content; `opfl trail
    verify --export DIR` compares every file with the chain.
    """
    console = Console()
    found = _read(console, rpc_url, deployment, job)
    files = write_export(found, out)
    digest = trail_document(found)["digest"]
    console.print(f"{out / 'index.html'} and {len(files) - 1} other files written", soft_wrap=True)
    console.print(
        f"{len(found.entries)} events up to block {found.block}, digest {digest}",
        highlight=False,
        soft_wrap=True,
    )
    write_json(
        json_file, {**_summary(found), "digest": digest, "files": [path.name for path in files]}
    )


@trail.command()
def verify(
    rpc_url: RpcUrl,
    job: Job,
    deployment: DeploymentFile = Path("deployment.json"),
    export: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="An export to compare with the chain.", file_okay=False),
    ] = None,
    answers: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A member's answers.jsonl, to recompute proved audits; may be repeated.",
            dir_okay=False,
        ),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Recompute the history of a job from the chain, and report the first discrepancy.

    Rolls, beacons, verdicts, held audits and how they ended, faults of
    members, seats, pay, every wei, the models and all signatures are
    recomputed from the events and the rules, and compared with the state of
    the contracts. Exits with 1 on any discrepancy. Notes say what is still
    open, and what the chain does not show.

    With the words that members signed, the verdicts of proved audits and the
    outcomes of held ones are recomputed as well; notes name who lied.
    """
    console = Console()
    found = _read(console, rpc_url, deployment, job)
    report = check_trail(found)
    if export is not None:
        report = report.with_report(check_export(found, export))
    if answers:
        report = report.with_report(check_published(found, answers))
    console.print(facts_table(report, found))
    for note in report.notes:
        console.print(f"note: {note}", highlight=False, soft_wrap=True)
    write_json(json_file, {**_summary(found), **report.report})
    if report.first_failure is not None:
        more = len(report.failures) - 1
        console.print(
            f"[red]does not hold:[/] {report.first_failure}", highlight=False, soft_wrap=True
        )
        if more:
            console.print(f"and {more} more after it", highlight=False)
        raise typer.Exit(1)
    console.print("[green]everything holds[/]")


def facts_table(report: Report, found: Trail) -> Table:
    """Return the table of the number of facts per check."""
    title = f"job {found.job}, {len(found.entries)} events up to block {found.block}"
    table = light_table(("check", ">facts", ">do not hold"), title=title)
    failed = [failure.check for failure in report.failures]
    for name, count in report.facts.items():
        failures = failed.count(name)
        style = "red" if failures else None
        table.add_row(name, f"{count:,}", f"{failures:,}" if failures else "", style=style)
    return table


def _read(console: Console, rpc_url: str, deployment: Path, job: int) -> Trail:
    with Rpc(rpc_url) as rpc, console.status("reading the chain"):
        return read_trail(rpc, Deployment.read(deployment), job)


def _summary(found: Trail) -> dict[str, Any]:
    return {
        "chain_id": found.chain_id,
        "genesis": found.genesis,
        "job": found.job,
        "block": found.block,
        "events": len(found.entries),
    }
