"""A job as a configuration: participants, cheats, disturbances; and its outcome."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from opfl_chain.adversaries.clients import DELIVERIES, JOINED_BY, cheats_in
from opfl_chain.bench.attacks.disturbances import Disturbance
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.jobs.localnet.outcome import JobOutcome
from opfl_chain.jobs.localnet.plan import Plan
from opfl_chain.roles.member.proved_audits import ANSWERS_FILE
from opfl_chain.system.template import Template
from opfl_chain.trail import Report
from opfl_chain.trail.answers import check_published

UNSEEN = ("poison", "drift:0.05")
"""Attacks that no audit can detect: wrong data, and deviations within the boundary."""


@dataclass(frozen=True)
class Scenario:
    """`meanwhile` is given the job before it starts; what it returns is called repeatedly."""

    plan: Plan
    meanwhile: Callable[[Localnet], Disturbance] = Disturbance

    @classmethod
    def of(
        cls, meanwhile: Callable[[Localnet], Disturbance] = Disturbance, **plan: object
    ) -> "Scenario":
        return cls(Plan(**{"dataset": "synthetic", "score": False, **plan}), meanwhile)


@dataclass(frozen=True)
class Played:
    """A finished job."""

    scenario: Scenario
    outcome: JobOutcome
    folder: Path
    meanwhile: Disturbance
    told: str
    """The words of its disturbance about itself."""
    took_place: bool
    accuracies: dict[int, float] = field(default_factory=dict)

    @property
    def honest_clients(self) -> list[str]:
        cheats = enumerate(self.scenario.plan.clients)
        return [f"client-{i}" for i, cheat in cheats if cheat in (None, *UNSEEN)]

    @property
    def honest_members(self) -> list[str]:
        """Members and standbys."""
        plan = self.scenario.plan
        members = [f"member-{i}" for i, cheat in enumerate(plan.members) if cheat is None]
        return members + [f"standby-{i}" for i, cheat in enumerate(plan.standbys) if cheat is None]

    @property
    def audited_attacks(self) -> set[tuple[int, str]]:
        """Rounds and clients whose audited gradient was not that of an honest step."""
        found = set()
        for i, cheat in enumerate(self.scenario.plan.clients):
            if cheat in (None, *UNSEEN, *DELIVERIES):
                continue
            name, attack = f"client-{i}", cheat.partition(JOINED_BY)[0]
            rounds = range(self.outcome.rounds)
            took_part = [t for t in rounds if name in self.outcome.participants(t)]
            found |= {
                (t, name)
                for t in took_part
                if self.outcome.is_audited(t, name) and cheats_in(attack, t, min(took_part))
            }
        return found

    def client(self, cheat: str) -> str:
        """The client that cheats in this way."""
        return f"client-{list(self.scenario.plan.clients).index(cheat)}"

    def check_published(self, name: str) -> Report:
        """Recompute the verdicts from the answers that a member may publish."""
        path = self.folder / "state" / name / ANSWERS_FILE
        return check_published(self.outcome.trail, [path])

    def events(self, name: str) -> list[dict[str, object]]:
        """Log entries of a daemon, over all of its starts."""
        logs = sorted(self.folder.glob(f"{name}-*.log"), key=lambda path: path.stat().st_mtime)
        lines = [line for log in logs for line in log.read_text().splitlines()]
        return [json.loads(line) for line in lines if line.startswith("{")]


def play(scenario: Scenario, folder: Path, template: Template | None = None) -> Played:
    with (
        Localnet(scenario.plan, folder, template=template) as net,
        closing(scenario.meanwhile(net)) as each,
    ):
        net.start(each)
        net.run(each)
        outcome = JobOutcome.of(net)
        played = Played(scenario, outcome, folder, each, each.told, each.took_place)
    scored = {
        event["updates"]: event["accuracy"]
        for event in played.events("server")
        if event["event"] == "scored"
    }
    return replace(played, accuracies=scored)
