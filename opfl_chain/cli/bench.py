"""`opfl bench`: benchmarks on this machine."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from opfl_chain.bench.gas import GAS_COLUMNS, gas_page, gas_rows, measured_costs
from opfl_chain.cli.options import Chain, JsonFile, write_json
from opfl_chain.render.text import (
    markdown_table,
    megabytes,
    replace_section,
    terminal_table,
)
from opfl_chain.system.files import write_atomically

bench = typer.Typer(help="Run benchmarks on this machine.", no_args_is_help=True)

Page = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write the table into its section of a page.", dir_okay=False
    ),
]


@bench.callback()
def main() -> None:
    """Run benchmarks on this machine."""


@bench.command()
def gas(
    chain: Chain = "anvil",
    json_file: JsonFile = None,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the table as Markdown.", dir_okay=False),
    ] = None,
) -> None:
    """Show the gas cost of every action of every role.

    Runs every kind of transaction once on a fresh chain: rolls with and
    without pairs, the beacon as aggregate and as partial signatures, claims,
    charges, penalties, a change of seats, withdrawals.
    """
    with Console(stderr=True).status("measuring"):
        costs = measured_costs(chain)
    Console().print(terminal_table(GAS_COLUMNS, gas_rows(costs)))
    write_json(json_file, [cost.report for cost in costs])
    if markdown is not None:
        write_atomically(markdown, gas_page(costs))


@bench.command()
def audit(
    model: Annotated[str, typer.Option(help="lenet-61706 or lenet-431080.")] = "lenet-61706",
    repeats: Annotated[int, typer.Option(min=1, help="Measurements of each stage.")] = 3,
    batches: Annotated[
        str, typer.Option(metavar="N,N,...", help="Numbers of contributions to audit at once.")
    ] = "1,4,16",
    with_naive: Annotated[
        bool, typer.Option("--naive/--no-naive", help="Also measure the naive implementation.")
    ] = True,
    kinds: Annotated[
        str, typer.Option(metavar="KIND,...", help="Kinds of audits to measure.")
    ] = "plain,guided,proved",
    batch_size: Annotated[int, typer.Option(min=1, help="Examples of a training step.")] = 1,
    rtt_ms: Annotated[
        float,
        typer.Option(min=0, max=200, help="Round-trip time between members. Needs Linux and root."),
    ] = 0,
    page: Page = None,
    json_file: JsonFile = None,
) -> None:
    """Measure audits of all kinds stage by stage, and the naive one.

    Three processes on this machine, one contribution. Naive runs everything
    inside SPU: jax.grad of the usual model, a separate comparison for every
    threshold, the commitment recomputed with a Keccak of SPU's bit operations.
    Stages of all kinds alternate; figures are medians. The costs of a kind
    include the client's work and its delivery. With a round-trip time, each
    process has its own network namespace, and they communicate over TLS.
    """
    from opfl_chain.bench.audit import KINDS, audit_markdown, bench_audit, kinds_markdown
    from opfl_chain.bench.network import NamespacesUnavailable
    from opfl_chain.learning.registry import model_named

    sizes = [int(size) for size in batches.split(",") if size]
    chosen = kinds.split(",")
    if unknown := [kind for kind in chosen if kind not in KINDS]:
        raise typer.BadParameter(f"unknown kind of audit {unknown[0]!r}, known: {', '.join(KINDS)}")
    try:
        with Console(stderr=True).status("starting") as status:
            report = bench_audit(
                model_named(model),
                repeats,
                sizes,
                with_naive,
                rtt_ms,
                status.update,
                chosen,
                batch_size,
            ).report
        Console().print(audit_table(report))
        Console().print(kinds_table(report))
        if page is not None:
            of = model + (f", batch {batch_size}" if batch_size > 1 else "")
            of += f" at {rtt_ms:g} ms" if rtt_ms else ""
            replace_section(page, f"kinds of {of}", kinds_markdown(report))
            if batch_size == 1 and set(chosen) == set(KINDS):
                replace_section(page, f"audit of {of}", audit_markdown(report))
    except NamespacesUnavailable as error:
        report = {"skipped": str(error)}
        Console().print(f"skipped: {error}", highlight=False, soft_wrap=True)
    write_json(json_file, report)


@bench.command()
def calibrate(
    steps: Annotated[int, typer.Option(min=1, help="Honest steps to replay.")] = 100,
    json_file: JsonFile = None,
) -> None:
    """Measure the replay speed of honest steps for a calibration.

    Three processes on this machine, LeNet of 61,706 parameters, batch of one.
    After every group of steps that are replayed in parallel, one is replayed
    naively: jax.grad of the usual model. Compilation is not counted.
    """
    from opfl_chain.bench.calibrate import bench_calibrate
    from opfl_chain.learning.lenet import LENET_61706

    with Console(stderr=True).status("starting") as status:
        report = bench_calibrate(LENET_61706, steps, status.update).report
    Console(highlight=False, soft_wrap=True).print(
        f"{report['steps_per_minute']:.0f} steps per minute, {report['replay_seconds']:.3f} s each;"
        f" a naive replay takes {report['naive_replay_seconds']:.3f} s, so 100 steps take as"
        f" long as {report['hundred_steps_in_naive_replays']:.0f} naive replays"
    )
    write_json(json_file, report)


@bench.command()
def lab(
    model: Annotated[str, typer.Option(help="lenet-61706 or lenet-431080.")] = "lenet-61706",
    batch: Annotated[int, typer.Option(min=1, help="Instances attacked at once.")] = 24,
    repeats: Annotated[
        int, typer.Option(min=1, help="Measurements, of which the median is shown.")
    ] = 3,
    json_file: JsonFile = None,
) -> None:
    """Measure the number of adaptive attacks per minute in the lab.

    An instance is one step against one verifier at one strength: three starts
    of twenty iterations. Batches and single instances alternate.
    """
    from opfl_chain.bench.lab import bench_lab
    from opfl_chain.learning.registry import model_named

    with Console(stderr=True).status("attacking"):
        report = bench_lab(model_named(model), batch, repeats).report
    Console(highlight=False, soft_wrap=True).print(
        f"{report['instances_per_minute']:.0f} instances per minute in batches of {batch},"
        f" {report['alone_per_minute']:.0f} one by one; the full table of adaptive attacks takes"
        f" {report['minutes_for_the_full_table']:.0f} minutes"
    )
    write_json(json_file, report)


@bench.command()
def faults(
    runs: Annotated[int, typer.Option(min=1, help="Jobs to run.")] = 50,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the first job; the next jobs count up.")
    ] = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip runs that are already in the JSON file.")
    ] = False,
    page: Page = None,
    json_file: JsonFile = None,
) -> None:
    """Kill daemons at random points of whole jobs, and check the outcomes.

    Every run is a separate job: Anvil, a server, three members, a standby, four
    clients of which one cheats, two rounds. One to three times, a daemon is
    killed with SIGKILL and restarted up to 16 blocks later. In every third run
    a member does no audits, and the standby takes its seat. A run is right if
    the cheat is charged where it was audited, nobody honest loses a wei, no work
    is missing and the trail verifies. The folders of failed runs are kept.
    """
    from opfl_chain.bench.faults import faults_markdown, faults_report, run_with_faults

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
        write_json(json_file, faults_report([reports[each] for each in sorted(reports)]))
    total = faults_report(list(reports.values()))
    if page is not None:
        replace_section(page, "faults", faults_markdown(total))
    console.print(
        f"{total['runs']} runs with {total['kills']} kills: {total['wrong_verdicts']} wrong"
        f" verdicts, {total['lost_wei']} wei lost, {total['stuck_runs']} stuck"
    )
    if any(report["outcome"] != "right" for report in reports.values()):
        raise typer.Exit(1)


@bench.command()
def attacks(
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Attacks to play, by name.")
    ] = None,
    kind: Annotated[str, typer.Option(help="Kind of audits: proved or guided.")] = "proved",
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the rows that are already in the JSON file.")
    ] = False,
    page: Page = None,
    json_file: JsonFile = None,
) -> None:
    """Play every known attack on real daemons, and show what it cost whom.

    Every attack is a job of its own: Anvil, a server, three members, a standby
    and four or five clients, all of whose contributions are audited. An attack
    fails if no honest participant loses a wei, no secret bit is told, every
    audited cheat is charged in full, and whoever can be named pays. Inside MPC
    (guided) `flip` and `leak` work, which is expected and said in their rows.
    """
    from opfl_chain.bench.attacks.catalogue import attacks_called
    from opfl_chain.bench.attacks.report import attacks_markdown, attacks_table
    from opfl_chain.bench.attacks.rows import play_attack

    try:
        chosen = attacks_called(only, kind)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    known: dict[str, dict[str, Any]] = {}
    if resume and json_file is not None and json_file.exists():
        kept = json.loads(json_file.read_text())
        known = {row["attack"]: row for row in kept["attacks"] if row["kind"] == kind}
    rows: list[dict[str, Any]] = []
    for attack in chosen:
        with Console(stderr=True).status(attack.name):
            rows.append(known.get(attack.name) or play_attack(attack, kind).report)
        write_json(json_file, {"kind": kind, "attacks": rows})
    Console().print(attacks_table(rows))
    if page is not None:
        replace_section(page, f"attacks on {kind} audits", attacks_markdown(rows))
    if any(row["failures"] for row in rows):
        raise typer.Exit(1)


@bench.command()
def load(
    clients: Annotated[int, typer.Option(min=3, help="Clients in every round.")] = 200,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds to run.")] = 2,
    page: Page = None,
    json_file: JsonFile = None,
) -> None:
    """Run rounds with many clients, and measure the duration of each phase.

    Anvil, a server, three members and a standby run in separate processes; all
    clients in this one, with made-up gradients of LeNet's 61,706 coordinates. Their keys,
    signatures, bundles, deliveries over HTTPS and the roll are real. Nobody is
    audited: the cost of an audit does not depend on the number of clients.
    """
    from opfl_chain.bench.load import bench_load, load_markdown, load_table

    with (
        tempfile.TemporaryDirectory(prefix="opfl-load-") as folder,
        Console(stderr=True).status("starting") as status,
    ):
        report = bench_load(clients, rounds, Path(folder), status.update).report
    Console().print(load_table(report))
    if page is not None:
        replace_section(page, "load", load_markdown(report))
    write_json(json_file, report)


@bench.command()
def tamper(
    model: Annotated[str, typer.Option(help="lenet-61706 or lenet-431080.")] = "lenet-61706",
    repeats: Annotated[int, typer.Option(min=1, help="Contributions of each client.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of steps and of random errors.")] = 0,
    daemons: Annotated[
        bool, typer.Option("--daemons", help="Also play whole jobs with a tampering daemon.")
    ] = False,
    page: Page = None,
    json_file: JsonFile = None,
) -> None:
    """Tamper with all messages of one member in audits of proved steps.

    Every bit class of every word, random and malformed messages, silence, false
    findings, and corrections with the secrets of a colluding client; to both
    peers, or to one of them. Clients are honest, cheat (their gradient is
    moved) or forge their proof. A standby settles what holders of a component
    dispute, and the liar is named. Beside it: the same corrections if the
    answers of the two holders were not compared, and an attacker that knows all
    of a step but one bit, with each defence off.
    """
    from opfl_chain.bench.tampering.daemons import TAMPERING, daemon_runs
    from opfl_chain.bench.tampering.report import tamper_markdown, tamper_table
    from opfl_chain.bench.tampering.runs import bench_tamper
    from opfl_chain.learning.registry import model_named

    with Console(stderr=True).status("starting") as status:
        report = bench_tamper(model_named(model), repeats, seed, status.update)
        if daemons:
            report["daemons"] = [daemon_runs(cheat, status.update) for cheat in TAMPERING]
    Console().print(tamper_table(report))
    if page is not None:
        replace_section(page, f"tampering with {model}", tamper_markdown(report))
    write_json(json_file, report)
    if any(report[name] for name in ("wrong_verdicts", "misnamed", "unnamed", "leaks")):
        raise typer.Exit(1)


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
    from opfl_chain.bench.operation_errors import measured_errors
    from opfl_chain.mpc.local import MemoryCommittee

    columns = ["operation", "how", ">error, quanta", ">bound, quanta"]
    with MemoryCommittee() as committee:
        measured = list(measured_errors(committee, repeats))
    rows = [[op.name, op.how, f"{error:.1f}", str(op.bound_quanta)] for op, error in measured]
    Console().print(terminal_table(("operation", "how", ">quanta", ">bound"), rows))
    found = [
        {"operation": op.name, "error_quanta": error, "bound_quanta": op.bound_quanta}
        for op, error in measured
    ]
    write_json(json_file, found)
    if page is not None:
        replace_section(page, "operations", markdown_table(columns, rows))


def audit_table(report: dict[str, Any]) -> Table:
    totals = {
        "ours_seconds": "with scheme shares",
        "ours_mpc_seconds": "with scheme mpc",
        "guided_seconds": "guided",
    }
    found = [f"{report[name]:.2f} s {how}" for name, how in totals.items() if name in report]
    caption = f"whole audit: {', '.join(found)}" if found else ""
    if "naive_seconds" in report:
        caption += f"; naively {report['naive_seconds']:.2f} s, "
        ratios = (report[name] for name in ("speedup", "speedup_mpc", "speedup_guided"))
        caption += f"{', '.join(f'{ratio:.1f}' for ratio in ratios)} times as much"
    title = report["model"]
    if report["rtt_ms"]:
        title += f", {report['rtt_ms']:g} ms round trip"
    rows = (
        (
            name.replace("_", " "),
            f"{cost['seconds']:.3f}",
            megabytes(cost["sent_bytes"], 2),
            f"{cost['sent_messages']:,}",
            megabytes(cost["peak_memory_bytes"], 0) if cost["peak_memory_bytes"] else "",
        )
        for name, cost in report["stages"].items()
    )
    columns = ("stage", ">seconds", ">MB sent", ">messages", ">peak memory, MB")
    return terminal_table(columns, rows, title=title, caption=caption)


def kinds_table(report: dict[str, Any]) -> Table:
    from opfl_chain.bench.audit import KIND_COLUMNS, kind_ratios, kind_rows

    ratios = kind_ratios(report)
    caption = (
        f"guided against proved: {ratios['bytes']:,.0f} times the bytes,"
        f" {ratios['messages']:.0f} times the messages, {ratios['seconds']:.1f} times the seconds"
        if ratios
        else ""
    )
    title = "everything that an audit costs"
    return terminal_table(KIND_COLUMNS, kind_rows(report), title=title, caption=caption)
