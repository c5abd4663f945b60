"""A job as a configuration: participants, cheats, disturbances; and its outcome."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from opfl_chain.chain.bindings.types import Phases
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.jobs.localnet.outcome import JobOutcome
from opfl_chain.jobs.localnet.plan import Plan

UNSEEN = ("poison", "drift:0.05")
"""Attacks that no replay can detect: wrong data, and deviations within the boundary."""

PHASES = Phases(
    enrol=40,
    commit=20,
    beacon=20,
    deliver=20,
    attest=32,
    finalise=20,
    request=20,
    veto=20,
)
"""In blocks, which are mined when all daemons have done all they can."""


class Meanwhile:
    """Events beside what the daemons do. Called at every block, and in between."""

    def __init__(self, net: Localnet) -> None:
        self._net = net

    def __call__(self) -> None:
        """Do nothing: subclasses disturb the job here."""

    def close(self) -> None:
        """Release resources; subclasses that have any override it."""


@dataclass(frozen=True)
class Scenario:
    """`meanwhile` is given the job before it starts; what it returns is called repeatedly."""

    plan: Plan
    meanwhile: Callable[[Localnet], Meanwhile] = Meanwhile

    @classmethod
    def of(
        cls, meanwhile: Callable[[Localnet], Meanwhile] = Meanwhile, **plan: object
    ) -> "Scenario":
        return cls(Plan(dataset="synthetic", **{"phases": PHASES, **plan}), meanwhile)


@dataclass(frozen=True)
class Played:
    """A finished job."""

    scenario: Scenario
    outcome: JobOutcome
    folder: Path
    meanwhile: Meanwhile
    accuracies: dict[int, float] = field(default_factory=dict)

    @property
    def honest_clients(self) -> list[str]:
        cheats = enumerate(self.scenario.plan.clients)
        return [f"client-{i}" for i, cheat in cheats if cheat in (None, *UNSEEN)]

    @property
    def honest_members(self) -> list[str]:
        cheats = enumerate(self.scenario.plan.members)
        return [f"member-{i}" for i, cheat in cheats if cheat is None]

    def client(self, cheat: str) -> str:
        """The client that cheats in this way."""
        return f"client-{list(self.scenario.plan.clients).index(cheat)}"

    def events(self, name: str) -> list[dict[str, object]]:
        """Log entries of a daemon, over all of its starts."""
        logs = sorted(self.folder.glob(f"{name}-*.log"), key=lambda path: path.stat().st_mtime)
        lines = [line for log in logs for line in log.read_text().splitlines()]
        return [json.loads(line) for line in lines if line.startswith("{")]


def play(scenario: Scenario, folder: Path) -> Played:
    with Localnet(scenario.plan, folder) as net, closing(scenario.meanwhile(net)) as each:
        net.start(each)
        net.run(each)
        outcome = JobOutcome.of(net)
    played = Played(scenario, outcome, folder, each)
    scored = {
        event["updates"]: event["accuracy"]
        for event in played.events("server")
        if event["event"] == "scored"
    }
    return replace(played, accuracies=scored)
