"""Progress of a calibration in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from opfl_chain.calibration.run import Progress


class StepsPerMinute(ProgressColumn):
    """As fast as the last steps were."""

    def render(self, task: Task) -> Text:
        return Text(f"{60 * task.speed:,.0f} steps/min" if task.speed else "")


@contextmanager
def step_bars(console: Console) -> Iterator[Progress]:
    """What a run takes as `progress`: one bar for each thing that is done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        StepsPerMinute(),
        TextColumn("remaining"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console) as bars:
        tasks: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total, completed=done)
            bars.update(tasks[what], completed=done, total=total)

        yield report
