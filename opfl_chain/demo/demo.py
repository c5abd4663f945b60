"""Runs a demo: starts a job, shows it, kills who is to be killed, and adds everything up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from opfl_chain.demo.costs import Costs, accuracies, last_words
from opfl_chain.demo.kills import Kill, Kills
from opfl_chain.demo.result import DemoResult
from opfl_chain.demo.screen import Screen
from opfl_chain.demo.watching import Narrator, Watching
from opfl_chain.localnet.localnet import Localnet
from opfl_chain.localnet.outcome import Outcome
from opfl_chain.localnet.pace import Pace
from opfl_chain.localnet.plan import Plan
from opfl_chain.trail import check_export, write_export

_ROUND_SECONDS = 120.0
"""A round that takes longer hangs."""


def run_demo(
    plan: Plan, kills: Sequence[Kill], folder: Path, console: Console, started: float
) -> DemoResult:
    """`folder` gets settings, logs and state of every daemon in `net`, and the trail in `trail`."""
    with (
        Screen(console) as screen,
        Localnet(plan, folder / "net", narrator := Narrator(screen, started)) as net,
    ):
        watching, costs = Watching(net, narrator), Costs(net)
        striking = Kills(net, kills, costs.note, narrator.tell)
        steps: list[Callable[[], None]] = [Pace(net), striking, watching]

        def each() -> None:
            for step in steps:
                step()

        net.start(each)
        narrator.topic = "end"
        net.run(_ROUND_SECONDS * (1 + plan.rounds), each)
        narrator("recomputing the audit trail from the chain")
        outcome = Outcome.of(net)
        write_export(outcome.trail, folder / "trail")
        report = outcome.report.with_report(check_export(outcome.trail, folder / "trail"))
        net.daemons["server"].stop()
        watching.score(accuracies(last_words(net.folder, "server")))
        return DemoResult(
            plan,
            outcome,
            report,
            net.treasury,
            watching.last,
            watching.accuracies,
            costs.by_daemon(outcome.gas),
            narrator.seconds,
        )
