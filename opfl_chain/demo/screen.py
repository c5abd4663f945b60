"""The live view: the job at a glance while it runs, or a line for each event without a terminal."""

from __future__ import annotations

from collections import deque
from types import TracebackType

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from opfl_chain.demo.standing import PHASES, Mark, Standing
from opfl_chain.localnet.plan import ETHER

MARKS = {
    Mark.ABSENT: (" ", "dim"),
    Mark.COMMITTED: ("○", "dim"),
    Mark.CHOSEN: ("?", "yellow"),
    Mark.TRUSTED: ("·", ""),
    Mark.PASSED: ("✓", "green"),
    Mark.FAILED: ("✗", "bold red"),
    Mark.LEFT_OUT: ("-", "yellow"),
}
TOPICS = {"slash": "red", "veto": "green", "kill": "magenta", "restart": "magenta"}
_LINES = 8
_MOST_COLUMNS, _ROOMY = 40, 16
"""Rounds that there is room for, and room for a gap between them."""


class Screen:
    """A context manager. Only the latest events are on a terminal; without one, all are lines."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._recent: deque[Text] = deque(maxlen=_LINES)
        self._live: Live | None = None
        if console.is_terminal:
            self._live = Live(console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Screen:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        """Before there is a job to look at, or when it is over."""
        self.tell(seconds, topic, what)
        if self._live:
            self._live.update(Panel(Group(*self._recent), title="opfl demo", border_style="dim"))

    def show(self, standing: Standing) -> None:
        if self._live:
            body = Group(overview(standing), Text(), *self._recent)
            self._live.update(Panel(body, title="opfl demo", border_style="dim"))


def overview(standing: Standing) -> RenderableType:
    return Group(
        _round_line(standing),
        _blocks(standing),
        Text(),
        clients_table(standing),
        legend(),
        Text(),
        _accuracy(standing),
        _up(standing),
    )


def clients_table(standing: Standing) -> Table:
    """One character for every contribution."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column("client")
    table.add_column("cheat")
    table.add_column("deposit", justify="right")
    table.add_column(f"rounds 0 to {standing.rounds - 1}", no_wrap=True)
    table.add_column("")
    gap = " " if standing.rounds <= _ROOMY else ""
    for name, marks in standing.grid.items():
        slashed = name in standing.slashed
        row = Text()
        for mark in marks[-_MOST_COLUMNS:]:
            symbol, style = MARKS[mark]
            row.append(f"{symbol}{gap}", style=style)
        table.add_row(
            name,
            standing.cheats[name] or Text("honest", style="dim"),
            f"{standing.deposits.get(name, 0) / ETHER:g} ETH",
            row,
            Text(f"slashed for round {standing.slashed[name]}", style="red") if slashed else "",
            style="red" if slashed else None,
        )
    return table


def legend() -> Text:
    line = Text()
    for mark in (Mark.TRUSTED, Mark.PASSED, Mark.FAILED, Mark.CHOSEN, Mark.COMMITTED):
        symbol, style = MARKS[mark]
        line.append(f"{symbol} ", style=style)
        line.append(f"{mark.value}   ", style="dim")
    return line


def _round_line(standing: Standing) -> Text:
    phase = standing.phase
    if phase is None:
        return Text("enrolling", style="bold")
    line = Text(f"round {phase.round}  ", style="bold")
    for place, name in enumerate(PHASES):
        style = "bold cyan" if place == phase.place else "green" if place < phase.place else "dim"
        line.append(f"{'▸ ' if place else ''}{name} ", style=style)
    return line


def _blocks(standing: Standing) -> Text:
    line = Text(f"block {standing.block}", style="dim")
    if standing.phase is None or standing.phase.deadline is None:
        return line
    left = max(0, standing.phase.deadline - standing.block)
    return line.append(f", this phase until block {standing.phase.deadline} ({left} left)")


def _accuracy(standing: Standing) -> Text:
    line = Text("accuracy    ", style="dim")
    shown = [f"{value:.0%}" for _, value in sorted(standing.accuracies.items())][-12:]
    return line.append(" → ".join(shown), style="cyan")


def _up(standing: Standing) -> Text:
    """A dot for every process, and the name of those that are gone."""
    line = Text("processes", style="dim")
    role = ""
    for name, alive in standing.up.items():
        if name.partition("-")[0] != role:
            role = name.partition("-")[0]
            line.append(f"   {role} " if name == role else f"   {role}s ", style="dim")
        line.append("● " if alive else f"✗ {name} ", style="green" if alive else "bold red")
    return line
