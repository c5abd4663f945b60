"""Which daemons are killed at which points of a job, and for how long they stay away."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from opfl_chain.localnet.localnet import Localnet

LONGEST_DELAY = 2.0
LONGEST_ABSENCE = 4.0
MOST_KILLS = 3


@dataclass(frozen=True)
class Kill:
    """SIGKILL so many seconds after a job has come to a point, and a start after an absence."""

    name: str
    point: str
    delay: float
    absence: float

    @property
    def report(self) -> dict[str, Any]:
        return {
            "who": self.name,
            "point": self.point,
            "delay_seconds": round(self.delay, 3),
            "absent_seconds": round(self.absence, 3),
        }


def points_of(rounds: int) -> list[str]:
    """The points of a job, in their order."""
    phases = ("committing", "signing the beacon", "delivering and auditing", "adding up")
    inside = [f"round {number}: {phase}" for number in range(rounds) for phase in phases]
    return ["enrolling", *inside, "slashing and leaving"]


def point_of(net: Localnet) -> str:
    """Where a job is."""
    view = net.view
    round_ = view.latest_round()
    if round_ is None:
        return "enrolling"
    if view.is_closed:
        return "slashing and leaving"
    phase = "adding up"
    if round_.verdict_hash is None and round_.over is None:
        phase = "delivering and auditing"
        if round_.seed is None:
            closed = net.devnet.rpc.block_number() >= round_.schedule.commit
            phase = "signing the beacon" if closed else "committing"
    return f"round {round_.number}: {phase}"


def draw_kills(seed: int, names: Sequence[str], rounds: int) -> list[Kill]:
    """One to three kills. The same seed draws the same ones."""
    source = random.Random(seed)
    return [
        Kill(
            source.choice(names),
            source.choice(points_of(rounds)),
            source.uniform(0, LONGEST_DELAY),
            source.uniform(0.2, LONGEST_ABSENCE),
        )
        for _ in range(source.randint(1, MOST_KILLS))
    ]


class Killer:
    """Called again and again, as `each` of a localnet."""

    def __init__(self, net: Localnet, kills: Sequence[Kill]) -> None:
        self._net = net
        self._points = points_of(net.plan.rounds)
        self._waiting = list(kills)
        self._due: list[tuple[float, Kill]] = []
        self._absent: list[tuple[float, str]] = []
        self.done: list[Kill] = []

    def __call__(self) -> None:
        now = time.monotonic()
        place = self._points.index(point_of(self._net))
        for kill in [k for k in self._waiting if self._points.index(k.point) <= place]:
            self._waiting.remove(kill)
            self._due.append((now + kill.delay, kill))
        for at, kill in [each for each in self._due if each[0] <= now]:
            self._due.remove((at, kill))
            self._strike(kill, now)
        for at, name in [each for each in self._absent if each[0] <= now]:
            self._absent.remove((at, name))
            self._net.daemons[name].start()

    def _strike(self, kill: Kill, now: float) -> None:
        """Whoever has left in good order, or is away already, is spared; the next one is not."""
        names = list(self._net.daemons)
        place = names.index(kill.name)
        for name in (*names[place:], *names[:place]):
            daemon = self._net.daemons[name]
            if daemon.started and daemon.alive:
                daemon.kill()
                self._absent.append((now + kill.absence, name))
                self.done.append(replace(kill, name=name))
                return
