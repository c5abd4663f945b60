"""Whole jobs in which daemons are killed at random points: what is right must stay right."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from opfl_chain.benchmarks.kills import Killer, draw_kills
from opfl_chain.chain.bindings.types import Phases
from opfl_chain.localnet.errors import LocalnetError
from opfl_chain.localnet.localnet import Localnet
from opfl_chain.localnet.outcome import PASSED, Outcome
from opfl_chain.localnet.pace import Pace
from opfl_chain.localnet.plan import Plan

CHEAT: Final = "amplify:10"
PLAN: Final = Plan(
    clients=(None, None, CHEAT),
    rounds=2,
    audit_rate=0.5,
    dataset="synthetic",
    score=False,
    phases=Phases(
        enrol=600,
        commit=160,
        beacon=120,
        deliver=120,
        attest=200,
        finalise=60,
        request=60,
        veto=80,
    ),
)
"""Phases outlast any absence, so that whoever comes back has missed nothing."""

_RUN_SECONDS = 150.0
Tell = Callable[[str], None]


@dataclass(frozen=True)
class FaultRun:
    """One job. `folder` is kept if anything is wrong with it."""

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


def run_with_faults(seed: int, tell: Tell = lambda text: None) -> FaultRun:
    """Play one job, kill daemons as the seed says, and compare the end with what is right."""
    folder = Path(tempfile.mkdtemp(prefix=f"opfl-faults-{seed}-"))
    plan, started = replace(PLAN, seed=seed), time.monotonic()
    stuck, outcome = None, None
    with Localnet(plan, folder, tell) as net:
        killer = Killer(net, draw_kills(seed, list(net.daemons), plan.rounds))
        pace = Pace(net)

        def each() -> None:
            killer()
            pace()

        try:
            net.start(each)
            net.run(_RUN_SECONDS, each)
        except LocalnetError as error:
            stuck = str(error)
        else:
            outcome = Outcome.of(net)
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


def wrong_verdicts(plan: Plan, outcome: Outcome) -> list[str]:
    """What was decided otherwise than it is, and what is missing, in sentences."""
    found = []
    executed = outcome.executed()
    caught = False
    for number in range(plan.rounds):
        if number >= outcome.rounds or not outcome.is_final(number):
            found.append(f"round {number} has no result")
            continue
        for client, cheat in enumerate(plan.clients):
            name = f"client-{client}"
            if cheat is not None and caught:
                continue  # it has no deposit left to commit with
            right = PASSED
            if cheat is not None and outcome.is_audited(number, name):
                right, caught = "REPLAY_OUTSIDE", True
            verdict = outcome.verdict(number, name)
            if verdict != right:
                found.append(f"round {number}: {name} is {verdict}, it should be {right}")
            paid = executed.get((number, name), PASSED)
            if paid != right:
                found.append(f"round {number}: {name} was slashed for {paid}, not for {right}")
    return found


def losses(plan: Plan, outcome: Outcome) -> dict[str, int]:
    """Wei that are gone and should not be, by a sentence that says whose; other losses are of 0."""
    honest = [f"client-{i}" for i, cheat in enumerate(plan.clients) if cheat is None]
    honest += [f"member-{i}" for i in range(len(plan.members))]
    found = {
        f"{name} lost {wei} wei": wei for name in honest if (wei := outcome.lost_wei(name)) != 0
    }
    if outcome.unaccounted_wei:
        found["wei are unaccounted for"] = abs(outcome.unaccounted_wei)
    for number in range(outcome.rounds):
        for name in sorted(set(honest) - outcome.participants(number) - outcome.attested(number)):
            found[f"round {number}: the work of {name} is missing"] = 0
    if (failure := outcome.report.first_failure) is not None:
        found[f"the trail does not hold: {failure}"] = 0
    return found


def faults_report(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of the reports of all runs, which are in it as `each`."""
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
