"""Benchmark of faults: daemons are killed and restarted at random points of whole jobs."""

from __future__ import annotations

import math
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from opfl_chain.chain.bindings.types import Phases
from opfl_chain.chain.terms import FEWEST_CONTRIBUTIONS
from opfl_chain.jobs.localnet.daemon import LocalnetError
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.jobs.localnet.outcome import ACQUITTED, LEFT_OUT, OUTSIDE, PASSED, JobOutcome
from opfl_chain.jobs.localnet.plan import Plan
from opfl_chain.render.text import markdown_table
from opfl_chain.system.template import Template

LONGEST_DELAY = 1.0
"""Seconds. The activity of a daemon at that time is up to the machine: nothing may depend on it."""
LONGEST_ABSENCE = 16
"""Blocks."""
MOST_KILLS = 3
CHEAT: Final = "amplify:10"
LAZY: Final = "skip-audits"
"""The member that loses its seat to the standby in every third run."""
PLAN: Final = Plan(
    clients=(None, None, None, CHEAT),
    rounds=2,
    audit_rate=0.5,
    dataset="synthetic",
    score=False,
    phases=Phases(
        enrol=60,
        deliver=60,
        roll=300,
        beacon=90,
        answer=60,
        attest=960,
        finalise=240,
        response=1500,
    ),
)
"""Every part of a phase outlasts three absences in a row: a restarted daemon misses none."""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Kill:
    """SIGKILL `delay` seconds after a job reaches a point; restart `absence` blocks later."""

    name: str
    point: str
    delay: float
    absence: int

    @property
    def report(self) -> dict[str, Any]:
        return {
            "who": self.name,
            "point": self.point,
            "delay_seconds": round(self.delay, 3),
            "absent_blocks": self.absence,
        }


def points_of(rounds: int) -> list[str]:
    """List the points of a job in order."""
    phases = ("delivering and listing", "signing the beacon", "auditing", "adding up")
    inside = [f"round {number}: {phase}" for number in range(rounds) for phase in phases]
    return ["enrolling", *inside, "charging and leaving"]


def point_of(net: Localnet) -> str:
    """Return the current point of a job."""
    view = net.view
    round_ = view.latest_round()
    if round_ is None:
        return "enrolling"
    if view.is_closed:
        return "charging and leaving"
    phase = "adding up"
    if round_.verdict_hash is None and round_.over is None:
        phase = "auditing"
        if round_.seed is None:
            phase = "delivering and listing" if round_.roll is None else "signing the beacon"
    return f"round {round_.number}: {phase}"


def plan_of(seed: int) -> Plan:
    """Return the job of a run: in every third one a member does no audits, and loses its seat."""
    members = (LAZY, None, None) if seed % 3 == 2 else (None, None, None)
    return replace(PLAN, seed=seed, members=members)


def draw_kills(seed: int, names: Sequence[str], rounds: int) -> list[Kill]:
    """Draw one to three kills, the same ones for the same seed."""
    source = random.Random(seed)
    return [
        Kill(
            source.choice(names),
            source.choice(points_of(rounds)),
            source.uniform(0, LONGEST_DELAY),
            math.ceil(source.uniform(0, LONGEST_ABSENCE)),
        )
        for _ in range(source.randint(1, MOST_KILLS))
    ]


class Killer:
    """Executes kills and restarts; a localnet calls it repeatedly as `each`."""

    def __init__(self, net: Localnet, kills: Sequence[Kill]) -> None:
        self._net = net
        self._points = points_of(net.plan.rounds)
        self._waiting = list(kills)
        self._due: list[tuple[float, Kill]] = []
        self.done: list[Kill] = []

    def __call__(self) -> None:
        now = time.monotonic()
        place = self._points.index(point_of(self._net))
        for kill in [k for k in self._waiting if self._points.index(k.point) <= place]:
            self._waiting.remove(kill)
            self._due.append((now + kill.delay, kill))
        for at, kill in [each for each in self._due if each[0] <= now]:
            self._due.remove((at, kill))
            self._strike(kill)

    def _strike(self, kill: Kill) -> None:
        """Kill the named daemon, or the next one if it has left or is down already."""
        names = list(self._net.daemons)
        place = names.index(kill.name)
        for name in (*names[place:], *names[:place]):
            daemon = self._net.daemons[name]
            if daemon.started and daemon.alive:
                self._net.kill(name, kill.absence)
                self.done.append(replace(kill, name=name))
                return


@dataclass(frozen=True)
class FaultRun:
    """The result of one job. `folder` is kept if the job went wrong."""

    seed: int
    kills: list[dict[str, Any]]
    seconds: float
    wrong_verdicts: list[str]
    lost: list[str]
    lost_wei: int
    stuck: str | None
    folder: Path | None

    @property
    def is_right(self) -> bool:
        return not (self.wrong_verdicts or self.lost or self.stuck)

    @property
    def report(self) -> dict[str, Any]:
        outcome = "right" if self.is_right else "stuck" if self.stuck else "wrong"
        return {
            "seed": self.seed,
            "kills": self.kills,
            "seconds": round(self.seconds, 1),
            "outcome": outcome,
            "wrong_verdicts": self.wrong_verdicts,
            "lost": self.lost,
            "lost_wei": self.lost_wei,
            "stuck": self.stuck,
        }


def run_with_faults(
    seed: int, tell: Tell = lambda text: None, template: Template | None = None
) -> FaultRun:
    """Play one job, kill daemons as the seed draws, and compare the outcome with the right one."""
    folder = Path(tempfile.mkdtemp(prefix=f"opfl-faults-{seed}-"))
    plan, started = plan_of(seed), time.monotonic()
    stuck, outcome = None, None
    with Localnet(plan, folder, tell, template) as net:
        killer = Killer(net, draw_kills(seed, list(net.daemons), plan.rounds))
        try:
            net.start(killer)
            net.run(killer)
        except LocalnetError as error:
            stuck = str(error)
        else:
            outcome = JobOutcome.of(net)
    wrong = wrong_verdicts(plan, outcome) if outcome else []
    lost = losses(plan, outcome) if outcome else {}
    run = FaultRun(
        seed,
        [kill.report for kill in killer.done],
        time.monotonic() - started,
        wrong,
        list(lost),
        sum(lost.values()),
        stuck,
        folder,
    )
    if not run.is_right:
        return run
    shutil.rmtree(folder)
    return replace(run, folder=None)


def wrong_verdicts(plan: Plan, outcome: JobOutcome) -> list[str]:
    """Return a sentence for every wrong or missing verdict and charge."""
    found = []
    charged = outcome.charged()
    caught = False
    for number in range(plan.rounds):
        if number >= outcome.rounds or not outcome.is_final(number):
            if not _is_void_by_rule(plan, outcome, number):
                found.append(f"round {number} has no result")
            continue
        for client, cheat in enumerate(plan.clients):
            name = f"client-{client}"
            if cheat is not None and caught:
                continue  # it has no deposit left to contribute with
            right: tuple[str, ...] = (PASSED, ACQUITTED)
            if cheat is not None and outcome.is_audited(number, name):
                right, caught = (OUTSIDE,), True
            elif _is_suspended(outcome, number, name):
                right = (LEFT_OUT,)
            verdict = outcome.verdict(number, name)
            if verdict not in right:
                found.append(f"round {number}: {name} is {verdict}, it should be {right[0]}")
            paid = charged.get((number, name), PASSED)
            if paid not in (*right, PASSED) or (OUTSIDE in right and paid != OUTSIDE):
                found.append(f"round {number}: {name} was charged for {paid}, not for {right[0]}")
    if any(plan.members) and not outcome.seat_changes():
        found.append("the member that does no audits kept its seat")
    return found


def _is_suspended(outcome: JobOutcome, number: int, name: str) -> bool:
    """Return whether an earlier audit of a client was held: it is on no roll until it is decided.

    That costs an honest client a round and no money. It happens where a member does no audits, as
    nothing is replayed before the standby has its seat.
    """
    earlier = any((t, name) in outcome.held() for t in range(number))
    return earlier and name not in outcome.participants(number)


def _is_void_by_rule(plan: Plan, outcome: JobOutcome, number: int) -> bool:
    """Return whether too few clients could contribute to a round that was opened.

    That costs nobody money. It happens where a member does no audits, and those of so many clients
    are held that the others are fewer than a sum must have.
    """
    if number >= outcome.rounds or outcome.is_final(number):
        return False
    charged = {name for t, name in outcome.charged() if t < number}
    names = {f"client-{client}" for client in range(len(plan.clients))} - charged
    able = [name for name in names if not _is_suspended(outcome, number, name)]
    return len(able) < FEWEST_CONTRIBUTIONS


def losses(plan: Plan, outcome: JobOutcome) -> dict[str, int]:
    """Return wrongly lost wei by a sentence that names the loser; other losses count 0 wei."""
    clients = {f"client-{i}" for i, cheat in enumerate(plan.clients) if cheat is None}
    members = {f"member-{i}" for i, cheat in enumerate(plan.members) if cheat is None}
    members |= {f"standby-{i}" for i in range(len(plan.standbys))}
    found = {
        f"{name} lost {wei} wei": wei
        for name in sorted(clients | members)
        if (wei := outcome.lost_wei(name)) != 0
    }
    if outcome.unaccounted_wei:
        found["wei are unaccounted for"] = abs(outcome.unaccounted_wei)
    if outcome.unowed_wei:
        found["wei in the contract are owed to nobody"] = abs(outcome.unowed_wei)
    for number in range(outcome.rounds):
        if _is_void_by_rule(plan, outcome, number):
            continue
        due = {name for name in clients if not _is_suspended(outcome, number, name)}
        due |= members & set(outcome.seats(number))
        for name in sorted(due - outcome.participants(number) - outcome.attested(number)):
            found[f"round {number}: the work of {name} is missing"] = 0
    if (failure := outcome.report.first_failure) is not None:
        found[f"the trail does not hold: {failure}"] = 0
    return found


def faults_report(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Summarise the reports of all runs, which it includes as `each`."""
    return {
        "runs": len(reports),
        "wrong_verdicts": sum(len(each["wrong_verdicts"]) for each in reports),
        "lost_wei": sum(each["lost_wei"] for each in reports),
        "stuck_runs": sum(each["stuck"] is not None for each in reports),
        "other_losses": sum(len(each["lost"]) for each in reports if not each["lost_wei"]),
        "kills": sum(len(each["kills"]) for each in reports),
        "seconds": round(sum(each["seconds"] for each in reports), 1),
        "clients": len(PLAN.clients),
        "rounds_of_a_run": PLAN.rounds,
        "audit_rate": PLAN.audit_rate,
        "each": list(reports),
    }


def faults_markdown(total: Mapping[str, Any]) -> str:
    """Format the summary of all runs for a page."""
    columns = {
        "runs": "runs",
        "kills": "kills",
        "wrong_verdicts": "wrong verdicts",
        "lost_wei": "wei lost",
        "other_losses": "other losses",
        "stuck_runs": "stuck runs",
    }
    row = [f"{total[name]:,}" for name in columns]
    return markdown_table([f">{title}" for title in columns.values()], [row])
