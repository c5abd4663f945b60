"""Runs a demo: starts a job, shows it, kills daemons on request, and adds everything up."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from opfl_chain.jobs.demo.narration import JobFollower, Narrator
from opfl_chain.jobs.demo.result import Costs, DemoResult, accuracies, last_words
from opfl_chain.jobs.demo.screen import Screen
from opfl_chain.jobs.localnet.daemon import LocalnetError, PlanInvalid
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.jobs.localnet.outcome import JobOutcome
from opfl_chain.jobs.localnet.plan import Plan
from opfl_chain.trail import check_export, write_export

ABSENCE_BLOCKS = 4
FORM = "ROLE:N@roundR"
_TEXT = re.compile(r"(?:(client|committee|standby):(\d{1,4})|server)@round(\d{1,6})")

Tell = Callable[[str, str], None]
_MARK = ".opfl-demo"
"""Marks a folder that a demo wrote and the next one may replace."""


@dataclass(frozen=True)
class Kill:
    daemon: str
    """The name of its settings file: `member-1`."""
    round: int

    @classmethod
    def parse(cls, text: str, plan: Plan) -> Kill:
        found = _TEXT.fullmatch(text)
        if found is None:
            raise PlanInvalid(
                f"{text!r} is not a kill. Write {FORM}: committee:1@round3, client:0@round2,"
                " standby:0@round1 or server@round4"
            )
        role, place, number = found[1], found[2], int(found[3])
        if number >= plan.rounds:
            raise PlanInvalid(f"{text!r}: rounds are numbered from 0 to {plan.rounds - 1}")
        if role is None:
            return cls("server", number)
        name, all_ = {
            "client": ("client", plan.clients),
            "committee": ("member", plan.members),
            "standby": ("standby", plan.standbys),
        }[role]
        there = len(all_)
        if int(place) >= there:
            raise PlanInvalid(f"{text!r}: there are {there} of them, numbered from 0")
        return cls(f"{name}-{int(place)}", number)


class Kills:
    """Called repeatedly, as `each` of a localnet."""

    def __init__(
        self, net: Localnet, kills: Sequence[Kill], before: Callable[[str], None], tell: Tell
    ) -> None:
        """`before` is called with a daemon's name right before it dies."""
        self._net = net
        self._waiting = list(kills)
        self._before = before
        self._tell = tell

    def __call__(self) -> None:
        for kill in [each for each in self._waiting if self._is_time(each)]:
            self._waiting.remove(kill)
            if self._net.daemons[kill.daemon].alive:
                self._strike(kill)

    def _is_time(self, kill: Kill) -> bool:
        """Return whether it is known who is audited: then clients answer, and audits begin."""
        round_ = self._net.view.round(kill.round)
        return round_ is not None and (round_.seed is not None or round_.over is not None)

    def _strike(self, kill: Kill) -> None:
        self._before(kill.daemon)
        told = f"{kill.daemon} restarts and resumes where it was"
        self._net.kill(kill.daemon, ABSENCE_BLOCKS, lambda: self._tell("restart", told))
        self._tell("kill", f"{kill.daemon} is killed in the middle of round {kill.round}")


class FolderTaken(LocalnetError):
    """The folder holds files that no demo wrote."""


def fresh_folder(path: Path) -> Path:
    """Return an empty folder; the last demo's files are moved to `NAME-before` beside it."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        if not (path / _MARK).is_file():
            raise FolderTaken(
                f"{path} holds files that no demo wrote: name another folder with --out, or move"
                " it away"
            )
        before = path.with_name(f"{path.name}-before")
        if before.exists() and not (before / _MARK).is_file():
            raise FolderTaken(f"{before} exists, and no demo wrote it: move it away")
        shutil.rmtree(before, ignore_errors=True)
        path.rename(before)
    path.mkdir(parents=True, exist_ok=True)
    (path / _MARK).touch()
    return path


def run_demo(
    plan: Plan, kills: Sequence[Kill], folder: Path, console: Console, started: float
) -> DemoResult:
    """Run a demo. `folder` gets the daemons' settings, logs and state in `net`, and the `trail`."""
    with (
        Screen(console) as screen,
        Localnet(plan, folder / "net", narrator := Narrator(screen, started)) as net,
    ):
        follower, costs = JobFollower(net, narrator), Costs(net)
        striking = Kills(net, kills, costs.note, narrator.tell)
        steps: list[Callable[[], None]] = [striking, follower]

        def each() -> None:
            for step in steps:
                step()

        net.start(each)
        narrator.topic = "end"
        net.run(each)
        narrator("recomputing the audit trail from the chain")
        outcome = JobOutcome.of(net)
        write_export(outcome.trail, folder / "trail")
        report = outcome.report.with_report(check_export(outcome.trail, folder / "trail"))
        net.daemons["server"].stop()
        follower.score(accuracies(last_words(net.folder, "server")))
        return DemoResult(
            plan,
            outcome,
            report,
            net.treasury,
            follower.last,
            follower.accuracies,
            costs.by_daemon(outcome.gas),
            narrator.seconds,
        )
