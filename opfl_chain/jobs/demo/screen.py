"""The live view: the job at a glance while it runs, or a line for each event without a terminal."""

from __future__ import annotations

from collections import deque
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from opfl_chain.jobs.demo.status import PHASES, JobStatus, Mark
from opfl_chain.render.text import ether, light_table
from opfl_chain.system.closing import Closing

MARKS = {
    Mark.ABSENT: (" ", "dim"),
    Mark.ON_ROLL: ("○", "dim"),
    Mark.CHOSEN: ("?", "yellow"),
    Mark.TRUSTED: ("·", ""),
    Mark.PASSED: ("✓", "green"),
    Mark.HELD: ("!", "yellow"),
    Mark.CHARGED: ("✗", "bold red"),
    Mark.ACQUITTED: ("+", "green"),
    Mark.LEFT_OUT: ("-", "yellow"),
}
TOPICS = {
    "charge": "red",
    "penalty": "red",
    "acquittal": "green",
    "seats": "cyan",
    "kill": "magenta",
    "restart": "magenta",
}
_LINES = 8
_MOST_COLUMNS, _ROOMY = 40, 16
"""Most rounds that are shown, and most that are shown with gaps."""


class Screen(Closing):
    """A context manager. A terminal shows the latest events; without one, each is a line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._recent: deque[Text] = deque(maxlen=_LINES)
        self._live: Live | None = None
        if console.is_terminal:
            self._live = Live(console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def close(self) -> None:
        if self._live:
            self._live.stop()

    def tell(self, seconds: float, topic: str, text: str) -> None:
        line = Text(f"{seconds:6.1f} s  ", style="dim")
        line.append(f"{topic:<9} ", style=TOPICS.get(topic, "bold"))
        line.append(text, style=TOPICS.get(topic, ""))
        self._recent.append(line)
        if self._live is None:
            self._console.print(line, soft_wrap=True)

    def starting(self, seconds: float, topic: str, what: str) -> None:
        """Tell something before there is a job to show, or when it is over."""
        self.tell(seconds, topic, what)
        if self._live:
            self._live.update(Panel(Group(*self._recent), title="opfl demo", border_style="dim"))

    def show(self, status: JobStatus) -> None:
        if self._live:
            body = Group(overview(status), Text(), *self._recent)
            self._live.update(Panel(body, title="opfl demo", border_style="dim"))


def overview(status: JobStatus) -> RenderableType:
    return Group(
        _round_line(status),
        _blocks(status),
        Text(),
        clients_table(status),
        legend(),
        members_table(status),
        Text(),
        _accuracy(status),
        _up(status),
    )


def clients_table(status: JobStatus) -> Table:
    """A row for each client, with one character for every contribution."""
    rounds = f"rounds 0 to {status.rounds - 1}"
    table = light_table(("client", "cheat", ">deposit", ">earned", rounds, ""), edge=False)
    table.columns[-2].no_wrap = True
    gap = " " if status.rounds <= _ROOMY else ""
    for name, marks in status.grid.items():
        charged = name in status.charged
        row = Text()
        for mark in marks[-_MOST_COLUMNS:]:
            symbol, style = MARKS[mark]
            row.append(f"{symbol}{gap}", style=style)
        table.add_row(
            name,
            status.cheats[name] or Text("honest", style="dim"),
            ether(status.deposits.get(name, 0)),
            ether(status.earned[name]),
            row,
            Text(f"charged in round {status.charged[name]}", style="red") if charged else "",
            style="red" if charged else None,
        )
    return table


def members_table(status: JobStatus) -> Table:
    """A row for each member and standby, with the faults that it paid for."""
    table = light_table(("member", "cheat", ">stake", ">earned", "seat", ""), edge=False)
    for name, member in status.members.items():
        faults = ", ".join(f"{fault.name.lower()} in round {n}" for n, fault in member.faults)
        table.add_row(
            name,
            member.cheat or Text("honest", style="dim"),
            ether(member.stake),
            ether(member.earned),
            Text("bench", style="dim") if member.seat is None else str(member.seat),
            Text(faults, style="red"),
            style="red" if faults else None,
        )
    return table


def legend() -> Text:
    line = Text()
    shown = (Mark.TRUSTED, Mark.PASSED, Mark.CHARGED, Mark.HELD, Mark.ACQUITTED, Mark.CHOSEN)
    for mark in shown:
        symbol, style = MARKS[mark]
        line.append(f"{symbol} ", style=style)
        line.append(f"{mark.value}   ", style="dim")
    return line


def _round_line(status: JobStatus) -> Text:
    phase = status.phase
    if phase is None:
        return Text("enrolling", style="bold")
    line = Text(f"round {phase.round}  ", style="bold")
    for place, name in enumerate(PHASES):
        style = "bold cyan" if place == phase.place else "green" if place < phase.place else "dim"
        line.append(f"{'▸ ' if place else ''}{name} ", style=style)
    return line


def _blocks(status: JobStatus) -> Text:
    line = Text(f"block {status.block}", style="dim")
    if status.phase is None or status.phase.deadline is None:
        return line
    left = max(0, status.phase.deadline - status.block)
    return line.append(f", this phase until block {status.phase.deadline} ({left} left)")


def _accuracy(status: JobStatus) -> Text:
    line = Text("accuracy    ", style="dim")
    shown = [f"{value:.0%}" for _, value in sorted(status.accuracies.items())][-12:]
    return line.append(" → ".join(shown), style="cyan")


def _up(status: JobStatus) -> Text:
    """A dot for every process, and the names of dead ones."""
    line = Text("processes", style="dim")
    role = ""
    for name, alive in status.up.items():
        if name.partition("-")[0] != role:
            role = name.partition("-")[0]
            line.append(f"   {role} " if name == role else f"   {role}s ", style="dim")
        line.append("● " if alive else f"✗ {name} ", style="green" if alive else "bold red")
    return line
