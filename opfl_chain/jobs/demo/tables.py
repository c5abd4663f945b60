"""Tables that a demo prints at its end."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opfl_chain.jobs.demo.result import Cost, DemoResult
from opfl_chain.jobs.demo.screen import clients_table, legend, members_table
from opfl_chain.render.text import (
    bytes_in_words,
    count_or_blank,
    ether,
    light_table,
    rounded_ether,
    seconds_in_words,
)

# Without the fonts that rich would load from the network.
_FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
_WIDTH = 96


def print_result(console: Console, result: DemoResult) -> None:
    if result.status is not None:
        console.print(clients_table(result.status), legend(), Text(), sep="\n")
        console.print(members_table(result.status), Text(), sep="\n")
    console.print(balances(result))
    console.print(cost_table(result))
    console.print(summary(result), soft_wrap=True)


def balances(result: DemoResult) -> Table:
    columns = ("", "cheat", ">before", ">after", ">rounds", ">audited", ">failed", ">lost")
    table = light_table(
        (*columns, ">earned"), title="Deposits before and after, in ETH", dense=True
    )
    for column in table.columns[:2]:
        column.no_wrap = True
    for client in result.clients:
        table.add_row(
            client.name,
            client.cheat or Text("honest", style="dim"),
            rounded_ether(client.deposit_before),
            rounded_ether(client.deposit_after),
            str(client.rounds),
            count_or_blank(client.audited),
            count_or_blank(client.failed),
            _amount(client.charged),
            _amount(client.earned),
            style="red" if client.charged else None,
        )
    for member in result.members:
        table.add_row(
            member.name,
            member.cheat or Text("honest", style="dim"),
            rounded_ether(member.deposit_before),
            rounded_ether(member.deposit_after),
            "",
            "",
            count_or_blank(len(member.faults)),
            _amount(member.penalised),
            _amount(member.earned + member.compensated),
            style="red" if member.penalised else None,
        )
    for name, amount in rest_of_the_money(result).items():
        table.add_row(name, *[""] * 7, _amount(amount))
    return table


def rest_of_the_money(result: DemoResult) -> dict[str, int]:
    """Destinations of the money that nobody's work earned, in wei."""
    return {
        "treasury": result.treasury_credit,
        "burned": result.burned,
        "refunded": result.outcome.refunded_wei,
    }


def cost_table(result: DemoResult) -> Table:
    processes = Counter(name.partition("-")[0] for name in result.costs)
    return light_table(
        ("role", ">processes", ">gas", ">sent", ">received", ">sent in MPC", ">CPU"),
        (
            (role, count_or_blank(processes[role]), *cost_cells(cost))
            for role, cost in result.roles.items()
        ),
        title="Cost of each role",
        dense=True,
    )


def cost_cells(cost: Cost) -> list[str]:
    sizes = (cost.bytes_sent, cost.bytes_received, cost.mpc_bytes_sent)
    return [
        f"{cost.gas:,}",
        *(bytes_in_words(size) if size else "" for size in sizes),
        seconds_in_words(cost.cpu_seconds) if cost.cpu_seconds else "",
    ]


def summary(result: DemoResult) -> Text:
    """Summarise the result in a few lines."""
    cheats = [client for client in result.clients if client.cheat is not None]
    line = Text()
    charged = sum(client.charged > 0 for client in cheats)
    line.append(f"{charged} of {len(cheats)} cheats charged", style="bold")
    line.append(f" ({result.cheats_audited} audited while they cheated), ")
    lost = result.honest_clients_lost + result.honest_members_lost
    style = "bold red" if lost else "bold green"
    line.append(f"{lost} honest participants lost anything", style=style)
    final = f"{result.rounds_final} of {result.outcome.rounds} rounds are final"
    for member in result.bad_members:
        line.append(f"\n{member.name} ({member.cheat}) ", style="bold")
        paid = f"paid {ether(member.penalised)} for {', '.join(member.faults)}"
        free = f"paid nothing, as nothing shows it to be at fault; {final}"
        line.append(paid if member.penalised else free)
    if result.plan.server is not None:
        line.append(f"\nserver ({result.plan.server}) ", style="bold")
        is_over = result.rounds_final == result.outcome.rounds
        line.append(f"stopped nothing: {final}" if is_over else f"cheated: {final}")
    scored = sorted(result.accuracies.items())
    if scored:
        line.append(f"\naccuracy {scored[0][1]:.1%} → {scored[-1][1]:.1%}", style="cyan")
        line.append(
            f" in {result.outcome.rounds} rounds, {seconds_in_words(result.seconds, 0)} in all"
        )
    facts = f"{len(result.outcome.trail.entries)} events, {sum(result.trail.facts.values()):,}"
    if result.trail.holds:
        line.append("\naudit trail verified", style="green")
        line.append(f": {facts} facts recomputed from the chain alone")
    else:
        line.append(f"\naudit trail does not hold: {result.trail.first_failure}", style="bold red")
    return line


def _amount(wei: int) -> str:
    return rounded_ether(wei) if wei else ""


def save_picture(path: Path, result: DemoResult) -> None:
    """Draw the result anew, independent of the width of the user's terminal."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    print_result(console, result)
    path.parent.mkdir(parents=True, exist_ok=True)
    console.save_svg(str(path), title="opfl demo", code_format=_FORMAT)
