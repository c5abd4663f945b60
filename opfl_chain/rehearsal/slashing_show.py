"""The slashing demo in a terminal: each step as it happens, then what became of the money."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from opfl_chain.rehearsal.slashing_demo import Outcome, SlashingDemo
from opfl_chain.rehearsal.stage import Stage


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
