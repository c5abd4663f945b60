"""Kills that the visitor asked for: a daemon dies in the middle of a round and comes back."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opfl_chain.localnet.errors import PlanInvalid
from opfl_chain.localnet.localnet import Localnet
from opfl_chain.localnet.plan import Plan

ABSENCE_SECONDS = 2.0
FORM = "ROLE:N@roundR"
_TEXT = re.compile(r"(?:(client|committee):(\d{1,4})|server)@round(\d{1,6})")

Tell = Callable[[str, str], None]


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
                f"{text!r} is no kill. Write {FORM}: committee:1@round3, client:0@round2 or"
                " server@round4"
            )
        role, place, number = found[1], found[2], int(found[3])
        if number >= plan.rounds:
            raise PlanInvalid(f"{text!r}: rounds are numbered from 0 to {plan.rounds - 1}")
        if role is None:
            return cls("server", number)
        there = len(plan.clients if role == "client" else plan.members)
        if int(place) >= there:
            raise PlanInvalid(f"{text!r}: there are {there} of them, numbered from 0")
        return cls(f"{'client' if role == 'client' else 'member'}-{int(place)}", number)


class Kills:
    """Called again and again, as `each` of a localnet."""

    def __init__(
        self, net: Localnet, kills: Sequence[Kill], before: Callable[[str], None], tell: Tell
    ) -> None:
        """`before` is called with a daemon's name right before it dies."""
        self._net = net
        self._waiting = list(kills)
        self._absent: dict[str, float] = {}
        self._before = before
        self._tell = tell

    def __call__(self) -> None:
        for kill in [each for each in self._waiting if self._is_time(each)]:
            self._waiting.remove(kill)
            if self._net.daemons[kill.daemon].alive:
                self._strike(kill)
        for name, until in list(self._absent.items()):
            if time.monotonic() >= until:
                del self._absent[name]
                self._net.daemons[name].start()
                self._tell("restart", f"{name} starts again and goes on where it was")

    def _is_time(self, kill: Kill) -> bool:
        """Once it is known who is audited: shares are on their way then, and audits begin."""
        round_ = self._net.view.round(kill.round)
        return round_ is not None and (round_.seed is not None or round_.over is not None)

    def _strike(self, kill: Kill) -> None:
        self._before(kill.daemon)
        self._net.daemons[kill.daemon].kill()
        self._absent[kill.daemon] = time.monotonic() + ABSENCE_SECONDS
        self._tell("kill", f"{kill.daemon} is killed in the middle of round {kill.round}")
