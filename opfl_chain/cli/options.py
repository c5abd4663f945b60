"""Options and progress bars that several commands share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from opfl_chain.chain.devnet import Backend
from opfl_chain.lab.calibration.run import Progress
from opfl_chain.learning.data.examples import DownloadProgress
from opfl_chain.system.files import write_atomically

Chain: TypeAlias = Annotated[
    Backend,
    typer.Option(help="Development chain to start; hardhat needs `make hardhat`."),
]

JsonFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the result as JSON.", dir_okay=False),
]

Keystore: TypeAlias = Annotated[
    Path,
    typer.Option(metavar="FILE", help="Encrypted key of the account that pays.", dir_okay=False),
]

Password: TypeAlias = Annotated[
    str,
    typer.Option(
        envvar="OPFL_PASSWORD",
        prompt=True,
        hide_input=True,
        help="Password of the key; prefer the variable or the prompt.",
    ),
]


def write_json(file: Path | None, result: Any) -> None:
    """Write a result to the file of `--json`, if the user named one."""
    if file is not None:
        write_atomically(file, json.dumps(result, indent=2) + "\n")


class StepsPerMinute(ProgressColumn):
    """Speed of the most recent steps."""

    def render(self, task: Task) -> Text:
        return Text(f"{60 * task.speed:,.0f} steps/min" if task.speed else "")


@contextmanager
def step_bars(console: Console) -> Iterator[Progress]:
    """Yield a `Progress` callback that shows one bar per activity."""
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


@contextmanager
def download_bars(console: Console) -> Iterator[DownloadProgress]:
    """Show download progress for `load_dataset`: one bar per file, removed at the end."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def report(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name)
            bars.update(tasks[name], completed=done, total=total)

        yield report
