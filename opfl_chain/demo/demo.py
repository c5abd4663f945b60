"""Runs a demo: starts a job, shows it, kills who is to be killed, and adds everything up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from opfl_chain.demo.costs import Costs, accuracies, last_words
from opfl_chain.demo.events import Events
from opfl_chain.demo.kills import Kill, Kills
from opfl_chain.demo.result import DemoResult
from opfl_chain.demo.screen import Screen
from opfl_chain.demo.standing import Standing, Standings
from opfl_chain.localnet.localnet import Localnet
from opfl_chain.localnet.outcome import Outcome
from opfl_chain.localnet.pace import Pace
from opfl_chain.localnet.plan import Plan
from opfl_chain.trail import check_export, write_export

LOOK_SECONDS = 0.25
_ROUND_SECONDS = 120.0
"""A round that takes longer hangs."""


class Demo:
    """`folder` gets settings, logs and state of every daemon in `net`, and the trail in `trail`."""

    def __init__(
        self, plan: Plan, kills: Sequence[Kill], folder: Path, console: Console, started: float
    ) -> None:
        self._plan = plan
        self._kills = kills
        self._folder = folder
        self._screen = Screen(console)
        self._started = started
        self._looked = 0.0
        self._accuracies: dict[int, float] = {}
        self.last: Standing | None = None
        """How things stood before everybody left."""

    def run(self) -> DemoResult:
        with (
            self._screen as screen,
            Localnet(
                self._plan,
                self._folder / "net",
                lambda text: screen.starting(self._seconds, text),
            ) as net,
        ):
            self._standings = Standings(net)
            self._events = Events(net, self._tell)
            self._costs = Costs(net)
            self._net = net
            kills = Kills(net, self._kills, self._costs.note, self._tell)
            steps: list[Callable[[], None]] = [Pace(net), kills, self._events, self._look]

            def each() -> None:
                for step in steps:
                    step()

            net.start(each)
            net.run(_ROUND_SECONDS * (1 + self._plan.rounds), each)
            screen.starting(self._seconds, "recomputing the audit trail from the chain")
            return self._result(net)

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _tell(self, topic: str, text: str) -> None:
        self._screen.tell(self._seconds, topic, text)

    def _look(self) -> None:
        """Not all the time: what is shown is asked from those who have other work to do."""
        if self._seconds < self._looked + LOOK_SECONDS:
            return
        self._looked = self._seconds
        scored = len(self._net.view.finalised_rounds()) + 1
        if len(self._accuracies) < scored and self._net.daemons["server"].alive:
            self._score(accuracies([self._net.health("server")]))
        standing = self._standings.now(self._seconds, self._accuracies)
        if not self._net.view.is_closed:
            self.last = standing
        self._screen.show(standing)

    def _score(self, known: dict[int, float]) -> None:
        for updates, accuracy in sorted(known.items()):
            self._accuracies[updates] = accuracy
            self._events.accuracy(updates, accuracy)

    def _result(self, net: Localnet) -> DemoResult:
        outcome = Outcome.of(net)
        write_export(outcome.trail, self._folder / "trail")
        report = outcome.report.with_report(check_export(outcome.trail, self._folder / "trail"))
        net.daemons["server"].stop()
        self._score(accuracies([last_words(net.folder, "server")]))
        return DemoResult(
            self._plan,
            outcome,
            report,
            net.treasury,
            dict(self._accuracies),
            self._costs.by_daemon(outcome.gas),
            self._seconds,
        )
