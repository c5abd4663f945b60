"""What a demo shows at its end."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opfl_chain.demo.costs import Cost
from opfl_chain.demo.result import DemoResult
from opfl_chain.demo.screen import clients_table, legend
from opfl_chain.localnet.plan import ETHER


def print_result(console: Console, result: DemoResult) -> None:
    if result.standing is not None:
        console.print(clients_table(result.standing), legend(), Text(), sep="\n")
    console.print(balances(result))
    console.print(cost_table(result))
    console.print(summary(result), soft_wrap=True)


def balances(result: DemoResult) -> Table:
    table = _table("Deposits before and after, in ETH")
    table.add_column("", no_wrap=True)
    table.add_column("cheat", no_wrap=True)
    for column in ("before", "after", "rounds", "audited", "failed", "slashed", "earned"):
        table.add_column(column, justify="right")
    for client in result.clients:
        table.add_row(
            client.name,
            client.cheat or Text("honest", style="dim"),
            ether(client.deposit_before),
            ether(client.deposit_after),
            str(client.rounds),
            _count(client.audited),
            _count(client.failed),
            _amount(client.slashed),
            "",
            style="red" if client.slashed else None,
        )
    for member in result.members:
        before, after = ether(member.deposit_before), ether(member.deposit_after)
        row = (member.name, "", before, after, "", "", "", _amount(member.penalised))
        table.add_row(*row, _amount(member.earned), style="red" if member.penalised else None)
    table.add_row("treasury", "", "", "", "", "", "", "", _amount(result.treasury_credit))
    table.add_row("burned", "", "", "", "", "", "", "", _amount(result.burned))
    return table


def cost_table(result: DemoResult) -> Table:
    table = _table("Cost of each role")
    table.add_column("role")
    for column in ("processes", "gas", "sent", "received", "sent in MPC", "CPU"):
        table.add_column(column, justify="right")
    for role, cost in result.roles.items():
        processes = sum(name.partition("-")[0] == role for name in result.costs)
        table.add_row(role, _count(processes), *cost_cells(cost))
    return table


def cost_cells(cost: Cost) -> list[str]:
    sizes = (cost.bytes_sent, cost.bytes_received, cost.mpc_bytes_sent)
    return [
        f"{cost.gas:,}",
        *(bytes_in_words(size) if size else "" for size in sizes),
        f"{cost.cpu_seconds:.1f} s" if cost.cpu_seconds else "",
    ]


def summary(result: DemoResult) -> Text:
    """Whether it went as it should, in three lines."""
    cheats = sum(client.cheat is not None for client in result.clients)
    line = Text()
    line.append(f"{result.caught} of {cheats} cheats slashed", style="bold")
    line.append(f" ({result.cheats_audited} audited while they cheated), ")
    style = "bold red" if result.honest_slashed else "bold green"
    line.append(f"{result.honest_slashed} honest clients lost anything", style=style)
    scored = sorted(result.accuracies.items())
    if scored:
        line.append(f"\naccuracy {scored[0][1]:.1%} → {scored[-1][1]:.1%}", style="cyan")
        line.append(f" in {result.outcome.rounds} rounds, {result.seconds:.0f} s in all")
    facts = f"{len(result.outcome.trail.entries)} events, {sum(result.trail.facts.values()):,}"
    if result.trail.holds:
        line.append("\naudit trail verified", style="green")
        line.append(f": {facts} facts recomputed from the chain alone")
    else:
        line.append(f"\naudit trail does not hold: {result.trail.first_failure}", style="bold red")
    return line


def ether(wei: int) -> str:
    return f"{wei / ETHER:,.4g}"


def bytes_in_words(size: int) -> str:
    return f"{size / 1e9:,.2f} GB" if size >= 10**9 else f"{size / 1e6:,.1f} MB"


def _amount(wei: int) -> str:
    return ether(wei) if wei else ""


def _count(number: int) -> str:
    return str(number) if number else ""


def _table(title: str) -> Table:
    """Narrow enough for 80 columns."""
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
