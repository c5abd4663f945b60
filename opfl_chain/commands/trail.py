"""`opfl trail`: what the chain has of a job, written down and recomputed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from opfl_chain.chain.deployment import Deployment
from opfl_chain.chain.files import write_atomically
from opfl_chain.chain.rpc import Rpc
from opfl_chain.commands.options import JsonFile
from opfl_chain.trail import Report, Trail, check_export, check_trail, read_trail, write_export
from opfl_chain.trail.canonical import trail_document

trail = typer.Typer(help="The audit trail of a job, from the chain alone.", no_args_is_help=True)

RpcUrl: TypeAlias = Annotated[str, typer.Option(metavar="URL", help="A node of the chain.")]
DeploymentFile: TypeAlias = Annotated[
    Path,
    typer.Option(
        metavar="FILE", help="Where the contracts are, as `opfl deploy` wrote it.", dir_okay=False
    ),
]
Job: TypeAlias = Annotated[int, typer.Option(min=1, max=2**64 - 1, metavar="N", help="The job.")]


@trail.command()
def export(
    rpc_url: RpcUrl,
    job: Job,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where it goes.", file_okay=False)],
    deployment: DeploymentFile = Path("deployment.json"),
    json_file: JsonFile = None,
) -> None:
    """Write every event of a job as JSON, as CSV, and as pages to read.

    DIR gets trail.json, trail.csv, index.html and a page for each round. The
    digest in trail.json is the keccak256 of all of it; `opfl trail verify
    --export DIR` compares every file with the chain.
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
    if json_file is not None:
        summary = {**_summary(found), "digest": digest, "files": [path.name for path in files]}
        write_atomically(json_file, json.dumps(summary, indent=2) + "\n")


@trail.command()
def verify(
    rpc_url: RpcUrl,
    job: Job,
    deployment: DeploymentFile = Path("deployment.json"),
    export: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="An export to compare with the chain.", file_okay=False),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Recompute all that the chain says about a job, and name the first thing that is not so.

    Commitments, beacons, who was audited, verdicts, slashes, where every wei
    went, the models, and who signed what: each follows from the events and the
    rules, and is compared with what the contracts did. Exits with 1 if
    anything does not hold.
    """
    console = Console()
    found = _read(console, rpc_url, deployment, job)
    report = check_trail(found)
    if export is not None:
        report = report.with_report(check_export(found, export))
    console.print(facts_table(report, found))
    if json_file is not None:
        summary = {**_summary(found), **report.report}
        write_atomically(json_file, json.dumps(summary, indent=2) + "\n")
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
    """How many facts each check covered."""
    table = Table(
        title=f"job {found.job}, {len(found.entries)} events up to block {found.block}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("check")
    table.add_column("facts", justify="right")
    table.add_column("do not hold", justify="right")
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
