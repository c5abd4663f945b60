"""Follows a job that runs: tells what happens, shows how it stands, keeps what is needed later."""

from __future__ import annotations

import time

from opfl_chain.demo.costs import accuracies
from opfl_chain.demo.events import Events
from opfl_chain.demo.screen import Screen
from opfl_chain.demo.standing import Standing, Standings
from opfl_chain.localnet.localnet import Localnet

LOOK_SECONDS = 0.25


class Clock:
    """Since the visitor pressed enter."""

    def __init__(self, started: float) -> None:
        self._started = started

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started


class Watching:
    """Called again and again, as `each` of a localnet."""

    def __init__(self, net: Localnet, screen: Screen, clock: Clock) -> None:
        self._net = net
        self._screen = screen
        self._clock = clock
        self._events = Events(net, self.tell)
        self._standings = Standings(net)
        self._looked = float("-inf")
        self.accuracies: dict[int, float] = {}
        self.last: Standing | None = None
        """How things stood before everybody left."""

    def __call__(self) -> None:
        self._events()
        # Not all the time: what is shown is asked from those who have other work to do.
        if self._clock.seconds >= self._looked + LOOK_SECONDS:
            self._looked = self._clock.seconds
            self._look()

    def tell(self, topic: str, text: str) -> None:
        self._screen.tell(self._clock.seconds, topic, text)

    def score(self, known: dict[int, float]) -> None:
        for updates, accuracy in sorted(known.items()):
            self.accuracies[updates] = accuracy
            self._events.accuracy(updates, accuracy)

    def _look(self) -> None:
        models = len(self._net.view.finalised_rounds()) + 1
        if len(self.accuracies) < models and self._net.daemons["server"].alive:
            self.score(accuracies(self._net.health("server")))
        standing = self._standings.now(self._clock.seconds, self.accuracies)
        if not self._net.view.is_closed or self.last is None:
            self.last = standing
        self._screen.show(standing)
