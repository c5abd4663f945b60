"""`opfl bench`: measured figures."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from opfl_chain.chain.devnet import Backend, start_devnet
from opfl_chain.chain.files import write_atomically
from opfl_chain.commands.options import Chain, JsonFile
from opfl_chain.rehearsal.gas import CLIENTS, Cost, GasMeter
from opfl_chain.rehearsal.stage import ACCOUNTS_BESIDE_CLIENTS, Stage

bench = typer.Typer(help="Measure on this machine.", no_args_is_help=True)

GAS_PAGE = """\
# Gas per role and round

Made by `make gas` from the receipts of transactions on a fresh Anvil (Prague). A figure is the gas
of the whole transaction, with the 21,000 that every transaction costs.

"""


Page = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Put the table into its section of a page.", dir_okay=False),
]


@bench.callback()
def main() -> None:
    """Measure on this machine."""


@bench.command()
def gas(
    chain: Chain = "anvil",
    json_file: JsonFile = None,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the table as Markdown.", dir_okay=False),
    ] = None,
) -> None:
    """Show what every action of every role costs on chain.

    Plays one of everything with real transactions on a fresh chain: both kinds
    of commitments, the beacon as aggregate and as partial signatures, slashes,
    vetoes, penalties, withdrawals.
    """
    costs = measure(chain)
    Console().print(table_of(costs))
    if json_file is not None:
        json_file.write_text(json.dumps([cost.report for cost in costs], indent=2) + "\n")
    if markdown is not None:
        write_atomically(markdown, GAS_PAGE + markdown_of(costs))


@bench.command()
def audit(
    model: Annotated[str, typer.Option(help="lenet-61706 or lenet-431080.")] = "lenet-61706",
    repeats: Annotated[int, typer.Option(min=1, help="Measurements of each stage.")] = 3,
    batches: Annotated[
        str, typer.Option(metavar="N,N,...", help="How many contributions to audit at once.")
    ] = "1,4,16",
    with_naive: Annotated[
        bool, typer.Option("--naive/--no-naive", help="Measure the straightforward way as well.")
    ] = True,
    rtt_ms: Annotated[
        float,
        typer.Option(
            min=0, max=200, help="Round-trip time between members. Needs Linux, and to be root."
        ),
    ] = 0,
    page: Page = None,
    json_file: JsonFile = None,
) -> None:
    """Measure an audit stage by stage: done naively, and ours.

    Three processes on this machine, one contribution, batch of one. Naive is
    everything inside SPU: jax.grad of the usual model, every threshold a
    comparison of its own, the commitment recomputed with a Keccak of SPU's bit
    operations. Stages alternate; figures are medians. With a round-trip time
    each process is in a network of its own, and they talk under TLS.
    """
    from opfl_chain.benchmarks.audit import bench_audit
    from opfl_chain.benchmarks.audit_page import audit_markdown
    from opfl_chain.benchmarks.namespace import NamespacesUnavailable
    from opfl_chain.benchmarks.page import replace_section
    from opfl_chain.models.registry import model_named

    sizes = [int(size) for size in batches.split(",")]
    try:
        with Console(stderr=True).status("starting") as status:
            report = bench_audit(
                model_named(model), repeats, sizes, with_naive, rtt_ms, status.update
            ).report
        Console().print(audit_table(report))
        if page is not None:
            section = f"audit of {model}" + (f" at {rtt_ms:g} ms" if rtt_ms else "")
            replace_section(page, section, audit_markdown(report))
    except NamespacesUnavailable as error:
        report = {"skipped": str(error)}
        Console().print(f"skipped: {error}", highlight=False, soft_wrap=True)
    if json_file is not None:
        json_file.write_text(json.dumps(report, indent=2) + "\n")


@bench.command()
def calibrate(
    steps: Annotated[int, typer.Option(min=1, help="Honest steps to replay.")] = 100,
    json_file: JsonFile = None,
) -> None:
    """Measure how fast honest steps are replayed for a calibration.

    Three processes on this machine, LeNet of 61,706 parameters, batch of one.
    After every group of steps that are replayed side by side one is replayed
    naively: jax.grad of the usual model. Nothing is compiled while it counts.
    """
    from opfl_chain.benchmarks.calibrate import bench_calibrate
    from opfl_chain.models.lenet import LENET_61706

    with Console(stderr=True).status("starting") as status:
        report = bench_calibrate(LENET_61706, steps, status.update).report
    Console(highlight=False, soft_wrap=True).print(
        f"{report['steps_per_minute']:.0f} steps per minute, {report['replay_seconds']:.3f} s each;"
        f" a naive replay takes {report['naive_replay_seconds']:.3f} s, so that 100 steps take as"
        f" long as {report['hundred_steps_in_naive_replays']:.0f} of those"
    )
    if json_file is not None:
        write_atomically(json_file, json.dumps(report, indent=2) + "\n")


@bench.command()
def lab(
    model: Annotated[str, typer.Option(help="lenet-61706 or lenet-431080.")] = "lenet-61706",
    batch: Annotated[int, typer.Option(min=1, help="Instances attacked at once.")] = 24,
    repeats: Annotated[int, typer.Option(min=1, help="Measurements; medians are shown.")] = 3,
    json_file: JsonFile = None,
) -> None:
    """Measure how many adaptive attacks the lab makes in a minute.

    An instance is one step against one verifier at one strength: three starts
    of twenty iterations. Batches and single instances alternate.
    """
    from opfl_chain.benchmarks.lab import bench_lab
    from opfl_chain.models.registry import model_named

    with Console(stderr=True).status("attacking"):
        report = bench_lab(model_named(model), batch, repeats).report
    Console(highlight=False, soft_wrap=True).print(
        f"{report['instances_per_minute']:.0f} instances per minute in batches of {batch},"
        f" {report['alone_per_minute']:.0f} one by one; the full table of adaptive attacks takes"
        f" {report['minutes_for_the_full_table']:.0f} minutes"
    )
    if json_file is not None:
        write_atomically(json_file, json.dumps(report, indent=2) + "\n")


@bench.command()
def faults(
    runs: Annotated[int, typer.Option(min=1, help="Jobs to play.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Of the first job; others follow.")] = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the runs that the JSON file has already.")
    ] = False,
    json_file: JsonFile = None,
) -> None:
    """Kill daemons at random points of whole jobs, and see that nothing goes wrong.

    Every run is a job of its own: Anvil, a server, three members and three
    clients of which one cheats, two rounds. One to three times a daemon gets
    SIGKILL, and is started again up to four seconds later. A run is right if
    the cheat is slashed where it was audited, nobody else loses a wei, no work
    is missing and the trail verifies. The folder of a run that is not is kept.
    """
    from opfl_chain.benchmarks.faults import faults_report, run_with_faults

    console = Console(highlight=False, soft_wrap=True)
    reports: dict[int, dict[str, Any]] = {}
    if resume and json_file is not None and json_file.exists():
        reports = {each["seed"]: each for each in json.loads(json_file.read_text())["each"]}
    for number in range(seed, seed + runs):
        if number in reports:
            continue
        with Console(stderr=True).status(f"seed {number}"):
            run = run_with_faults(number)
        reports[number] = run.report
        kills = ", ".join(f"{kill['who']} in {kill['point']}" for kill in run.kills)
        outcome = run.report["outcome"]
        console.print(f"seed {number}: {outcome} after {run.seconds:.0f} s; killed {kills}")
        if not run.is_right:
            for problem in (*run.wrong_verdicts, *run.lost, *([run.stuck] if run.stuck else ())):
                console.print(f"  {problem}")
            console.print(f"  logs and state are kept in {run.folder}")
        if json_file is not None:
            summary = faults_report([reports[each] for each in sorted(reports)])
            write_atomically(json_file, json.dumps(summary, indent=2) + "\n")
    total = faults_report(list(reports.values()))
    console.print(
        f"{total['runs']} runs with {total['kills']} kills: {total['wrong_verdicts']} wrong"
        f" verdicts, {total['lost_wei']} wei lost, {total['stuck_runs']} stuck"
    )
    if any(report["outcome"] != "right" for report in reports.values()):
        raise typer.Exit(1)


@bench.command()
def load(
    clients: Annotated[int, typer.Option(min=2, help="Clients in every round.")] = 200,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds to play.")] = 2,
    page: Page = None,
    json_file: JsonFile = None,
) -> None:
    """Play rounds with many clients, and see how long each phase takes.

    Anvil, a server and three members in processes of their own; all clients in
    this one, with made-up gradients of LeNet's 61,706 coordinates. Their keys,
    signatures, shares, deliveries over HTTPS and the batch are real. Nobody is
    audited: that takes as long for many clients as for few.
    """
    from opfl_chain.benchmarks.load import bench_load
    from opfl_chain.benchmarks.load_page import load_markdown, load_table
    from opfl_chain.benchmarks.page import replace_section

    with (
        tempfile.TemporaryDirectory(prefix="opfl-load-") as folder,
        Console(stderr=True).status("starting") as status,
    ):
        report = bench_load(clients, rounds, Path(folder), status.update).report
    Console().print(load_table(report))
    if page is not None:
        replace_section(page, "load", load_markdown(report))
    if json_file is not None:
        write_atomically(json_file, json.dumps(report, indent=2) + "\n")


@bench.command()
def operations(
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each operation.")] = 5,
    page: Page = None,
    json_file: JsonFile = None,
) -> None:
    """Measure the error of every operation inside MPC against float64.

    A quantum is 2^-22, the smallest difference that the ring holds. Truncation
    is random in the last bit, so the largest error of several runs is shown.
    """
    from opfl_chain.benchmarks.operations import measured_errors
    from opfl_chain.benchmarks.page import markdown_table, replace_section
    from opfl_chain.mpc.memory_committee import MemoryCommittee

    table = Table("operation", "how")
    table.add_column("quanta", justify="right")
    table.add_column("bound", justify="right")
    rows, found = [], []
    with MemoryCommittee() as committee:
        for operation, error in measured_errors(committee, repeats):
            row = [operation.name, operation.how, f"{error:.1f}", str(operation.bound_quanta)]
            table.add_row(*row)
            rows.append(row)
            found.append({"operation": row[0], "error_quanta": error, "bound_quanta": int(row[3])})
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=2) + "\n")
    if page is not None:
        columns = ["operation", "how", ">error, quanta", ">bound, quanta"]
        replace_section(page, "operations", markdown_table(columns, rows))


def audit_table(report: dict[str, Any]) -> Table:
    caption = f"whole audit: {report['ours_seconds']:.2f} s with scheme shares, "
    caption += f"{report['ours_mpc_seconds']:.2f} s with scheme mpc, "
    caption += f"{report['guided_seconds']:.2f} s guided"
    if "naive_seconds" in report:
        caption += f"; naively {report['naive_seconds']:.2f} s, "
        ratios = (report[name] for name in ("speedup", "speedup_mpc", "speedup_guided"))
        caption += f"{', '.join(f'{ratio:.1f}' for ratio in ratios)} times as much"
    title = report["model"]
    if report["rtt_ms"]:
        title += f", {report['rtt_ms']:g} ms round trip"
    table = Table(title=title, caption=caption)
    table.add_column("stage")
    for column in ("seconds", "MB sent", "messages", "peak memory, MB"):
        table.add_column(column, justify="right")
    for name, cost in report["stages"].items():
        table.add_row(
            name.replace("_", " "),
            f"{cost['seconds']:.3f}",
            f"{cost['sent_bytes'] / 1e6:.2f}",
            f"{cost['sent_messages']:,}",
            f"{cost['peak_memory_bytes'] / 1e6:,.0f}" if cost["peak_memory_bytes"] else "",
        )
    return table


def measure(chain: Backend) -> list[Cost]:
    """Start a chain, play on it, and return the costs by role."""
    with (
        Console(stderr=True).status("measuring"),
        start_devnet(chain, accounts=CLIENTS + ACCOUNTS_BESIDE_CLIENTS) as devnet,
        tempfile.TemporaryDirectory(prefix="opfl-gas-") as folder,
        Stage(devnet.rpc, devnet.accounts, devnet.mine, Path(folder)) as stage,
    ):
        return sorted(GasMeter(stage).measure(), key=lambda cost: cost.role)


def table_of(costs: list[Cost]) -> Table:
    table = Table()
    for column in ("role", "action", "when"):
        table.add_column(column)
    table.add_column("gas", justify="right")
    for cost in costs:
        table.add_row(cost.role, cost.action, cost.when, shown(cost.gas))
    return table


def markdown_of(costs: list[Cost]) -> str:
    rows = [f"| {cost.role} | {cost.action} | {cost.when} | {shown(cost.gas)} |" for cost in costs]
    return "\n".join(["| role | action | when | gas |", "|---|---|---|--:|", *rows]) + "\n"


def shown(gas: float) -> str:
    return f"{gas:,.0f}" if gas >= 100 else f"{gas:.1f}"
