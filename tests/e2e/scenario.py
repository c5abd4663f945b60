"""A job as a configuration: who takes part, who cheats, what happens meanwhile; and its end."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from opfl_chain.chain.bindings.types import Phases
from opfl_chain.localnet.localnet import Localnet
from opfl_chain.localnet.outcome import Outcome
from opfl_chain.localnet.pace import Pace
from opfl_chain.localnet.plan import Plan

RUN_SECONDS = 240
UNSEEN = ("poison", "drift:0.05")
"""What no replay can tell from honest work: wrong data, and a little within the boundary."""

PHASES = Phases(
    enrol=600,
    commit=160,
    beacon=80,
    deliver=80,
    attest=160,
    finalise=60,
    request=60,
    veto=120,
)
"""Long enough for a busy machine. Blocks are made to reach an end that alone is waited for."""


@dataclass(frozen=True)
class Scenario:
    """`meanwhile` is given the job before it starts; what it returns is called again and again."""

    plan: Plan
    meanwhile: Callable[[Localnet], Pace] = Pace

    @classmethod
    def of(cls, meanwhile: Callable[[Localnet], Pace] = Pace, **plan: object) -> "Scenario":
        return cls(Plan(dataset="synthetic", **{"phases": PHASES, **plan}), meanwhile)


@dataclass(frozen=True)
class Played:
    """A finished job."""

    scenario: Scenario
    outcome: Outcome
    folder: Path
    meanwhile: Pace
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
        """What a daemon logged, over all of its starts."""
        logs = sorted(self.folder.glob(f"{name}-*.log"), key=lambda path: path.stat().st_mtime)
        lines = [line for log in logs for line in log.read_text().splitlines()]
        return [json.loads(line) for line in lines if line.startswith("{")]


def play(scenario: Scenario, folder: Path) -> Played:
    with Localnet(scenario.plan, folder) as net, closing(scenario.meanwhile(net)) as each:
        net.start(each)
        net.run(RUN_SECONDS, each)
        outcome = Outcome.of(net)
    played = Played(scenario, outcome, folder, each)
    scored = {
        event["updates"]: event["accuracy"]
        for event in played.events("server")
        if event["event"] == "scored"
    }
    return replace(played, accuracies=scored)
