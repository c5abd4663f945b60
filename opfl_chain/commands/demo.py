"""`opfl demo`: deposits, audits and a slash on a fresh chain."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.table import Table

from opfl_chain.chain.compiler import compile_contracts
from opfl_chain.chain.devnet import start_devnet
from opfl_chain.commands.options import Chain, JsonFile
from opfl_chain.rehearsal.slashing_demo import Outcome, SlashingDemo
from opfl_chain.rehearsal.stage import ACCOUNTS_BESIDE_CLIENTS, Stage

FEWEST_CLIENTS, MOST_CLIENTS = 2, 100

# Without the fonts that rich would load from the network.
PICTURE = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def demo(
    clients: Annotated[
        int,
        typer.Option(
            min=FEWEST_CLIENTS, max=MOST_CLIENTS, help="Clients, of which the last one cheats."
        ),
    ] = 5,
    audit_rate: Annotated[
        float,
        typer.Option(
            metavar="P", min=0.05, max=1.0, help="Probability that a contribution is audited."
        ),
    ] = 0.3,
    chain: Chain = "anvil",
    json_file: JsonFile = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg", help="Write what is shown as a picture.", dir_okay=False),
    ] = None,
) -> None:
    """Show how a client that cheats loses its deposit.

    Starts a chain, deploys the contracts and plays a job with real
    transactions: deposits, commitments, audit randomness from BLS signatures,
    verdicts, the veto window, the slash, and the withdrawals. One client
    cheats in every round; the job ends when an audit hits it.

    Gradients and verdicts are made up: nothing is trained or replayed here.
    """
    console = Console(record=record is not None)
    with console.status("compiling the contracts"):
        compile_contracts()
    with (
        start_devnet(chain, accounts=clients + ACCOUNTS_BESIDE_CLIENTS) as devnet,
        tempfile.TemporaryDirectory(prefix="opfl-demo-") as folder,
    ):
        console.print(f"[bold]{chain}[/] at {devnet.rpc_url}, chain id {devnet.chain_id}\n")
        with Stage(devnet.rpc, devnet.accounts, devnet.mine, Path(folder)) as stage:
            outcome = play(stage, audit_rate, console)
    if json_file is not None:
        json_file.write_text(json.dumps(outcome.report, indent=2) + "\n")
    if record is not None:
        console.save_svg(str(record), title="opfl demo", code_format=PICTURE)


def play(stage: Stage, audit_rate: float, console: Console) -> Outcome:
    """Run the demo, print each step as it happens, then what became of the money."""

    def tell(step: str, text: str) -> None:
        console.print(f"[cyan]{step:>12}[/]  {text}", highlight=False)

    for name, address in stage.deployment.addresses.items():
        tell("deployed", f"{name:<9}{address}")
    with console.status("playing"):
        outcome = SlashingDemo(stage, audit_rate, tell).run()
    console.print()
    console.print(balances(outcome))
    console.print(gas_by_role(outcome))
    return outcome


def balances(outcome: Outcome) -> Table:
    table = Table(title="Balances in ETH", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("")
    for column in ("deposit before", "after", "slashed", "earned", "audited"):
        table.add_column(column, justify="right")
    for account in outcome.accounts:
        name = f"{account.name} (cheats)" if account.cheat else account.name
        table.add_row(
            name,
            ether(account.deposit_before),
            ether(account.deposit_after),
            ether(account.slashed) if account.slashed else "",
            ether(account.earned) if account.earned else "",
            f"{account.audited}x" if account.role == "client" else "",
            style="red" if account.slashed else None,
        )
    table.add_row("treasury", "", "", "", ether(outcome.treasury), "")
    table.add_row("burned", "", ether(outcome.burned), "", "", "")
    return table


def gas_by_role(outcome: Outcome) -> Table:
    rounds = "1 round" if outcome.rounds == 1 else f"{outcome.rounds} rounds"
    table = Table(
        title=f"{rounds}, {outcome.seconds:.1f} s", title_justify="left", box=box.SIMPLE_HEAD
    )
    table.add_column("role")
    table.add_column("gas", justify="right")
    for role, gas in outcome.gas.items():
        table.add_row(role, f"{gas:,}")
    return table


def ether(wei: int) -> str:
    return f"{wei / 10**18:,.4g}"
