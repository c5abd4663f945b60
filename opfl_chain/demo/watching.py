"""Follows a job that runs: tells what happens, shows how it stands, keeps what is needed later."""

from __future__ import annotations

import time

from opfl_chain.demo.costs import accuracies
from opfl_chain.demo.events import Events
from opfl_chain.demo.screen import Screen
from opfl_chain.demo.standing import Standing, Standings
from opfl_chain.localnet.localnet import Localnet

LOOK_SECONDS = 0.25


class Narrator:
    """Tells everything with the time since the visitor pressed enter."""

    def __init__(self, screen: Screen, started: float) -> None:
        self.screen = screen
        self.topic = "set-up"
        """Of what happens beside the job."""
        self._started = started

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def __call__(self, text: str) -> None:
        self.screen.starting(self.seconds, self.topic, text)

    def tell(self, topic: str, text: str) -> None:
        self.screen.tell(self.seconds, topic, text)


class Watching:
    """Called again and again, as `each` of a localnet."""

    def __init__(self, net: Localnet, narrator: Narrator) -> None:
        self._net = net
        self._narrator = narrator
        self._events = Events(net, narrator.tell)
        self._standings = Standings(net)
        self._looked = float("-inf")
        self.accuracies: dict[int, float] = {}
        self.last: Standing | None = None
        """How things stood before everybody left."""

    def __call__(self) -> None:
        self._events()
        # Not all the time: what is shown is asked from those who have other work to do.
        if self._narrator.seconds >= self._looked + LOOK_SECONDS:
            self._looked = self._narrator.seconds
            self._look()

    def score(self, known: dict[int, float]) -> None:
        for updates, accuracy in sorted(known.items()):
            self.accuracies[updates] = accuracy
            self._events.accuracy(updates, accuracy)

    def _look(self) -> None:
        models = len(self._net.view.finalised_rounds()) + 1
        if len(self.accuracies) < models and self._net.daemons["server"].alive:
            self.score(accuracies(self._net.health("server")))
        standing = self._standings.now(self._narrator.seconds, self.accuracies)
        if not self._net.view.is_closed or self.last is None:
            self.last = standing
        self._narrator.screen.show(standing)
