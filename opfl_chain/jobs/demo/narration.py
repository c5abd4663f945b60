"""Follows a running job: tells each event once, shows its state, keeps what the result needs."""

from __future__ import annotations

import time
from collections.abc import Callable

from opfl_chain.chain.bindings.types import Reason, SlashStatus
from opfl_chain.jobs.demo.result import accuracies
from opfl_chain.jobs.demo.screen import Screen
from opfl_chain.jobs.demo.status import JobStatus, JobStatusReader
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.render.text import ether
from opfl_chain.roles.view.view import RoundView, SlashView

Tell = Callable[[str, str], None]
_LOOK_SECONDS = 0.25

REASONS = {
    Reason.COMMITMENT_MISMATCH: "its shares do not open its commitment",
    Reason.NOT_DELIVERED: "it delivered nothing",
    Reason.INPUT_NOT_COMMITTED: "its input is not in its data set",
    Reason.REPLAY_OUTSIDE: "its replay is outside the boundary",
}


class Events:
    """Called repeatedly, as `each` of a localnet. Tells a topic and a sentence."""

    def __init__(self, net: Localnet, tell: Tell) -> None:
        self._net = net
        self._tell = tell
        self._told: set[object] = set()
        self._names = {str(address): name for name, address in net.addresses.items()}

    def __call__(self) -> None:
        for round_ in self._net.view.rounds():
            if ("over", round_.number) not in self._told:
                self._round(round_)
        for slash in self._net.view.slashes():
            self._slash(slash)
        if self._net.view.is_closed:
            self._once("closed", "job", "closed: everybody withdraws")

    def accuracy(self, updates: int, accuracy: float) -> None:
        after = f"after {updates} update{'s'[: updates > 1]}" if updates else "of the first model"
        self._once(("accuracy", updates), "accuracy", f"{accuracy:.1%} {after}")

    def _round(self, round_: RoundView) -> None:
        view, number = self._net.view, round_.number
        topic = f"round {number}"
        model = round_.model_hash.hex()[:8]
        self._once(("open", number), topic, f"opened with model 0x{model}")
        committed = list(view.direct_commitments(round_.id))
        if round_.seed is not None:
            audited = [self._names[c] for c in committed if view.is_audited(round_, c)]
            self._once(
                ("beacon", number),
                topic,
                f"{len(committed)} committed; beacon 0x{round_.seed.hex()[:8]} audits"
                f" {', '.join(sorted(audited)) or 'nobody'}",
            )
        if round_.verdict_hash is not None:
            self._once(("verdict", number), topic, self._verdict(round_))
        if round_.over == "finalised":
            new = (round_.next_model_hash or b"").hex()[:8]
            self._once(("over", number), topic, f"final, next model 0x{new}")
        elif round_.over is not None:
            self._once(("over", number), topic, "void: the model is unchanged")

    def _verdict(self, round_: RoundView) -> str:
        verdict = self._net.view.decided_verdict(round_)
        if verdict is None:
            return "decided"
        by_index = {c.index: self._names[c.address] for c in self._net.view.clients().values()}
        passed = f"{len(verdict.passed)} passed"
        failed = [
            f"{by_index[fault.client]} fails: {REASONS[Reason(fault.reason)]}"
            for fault in verdict.faults
        ]
        return "; ".join([passed, *failed])

    def _slash(self, slash: SlashView) -> None:
        key, name = (slash.round, slash.client), self._names[slash.client]
        amount = ether(slash.captured)
        where = f"of {name} for round {slash.round}"
        again = "; it is replayed once more" if slash.reason is Reason.REPLAY_OUTSIDE else ""
        self._once(("request", key), "slash", f"{amount} {where} set aside{again}")
        if slash.status is SlashStatus.EXECUTED:
            self._once(("execute", key), "slash", f"{name} has lost {amount}")
        elif slash.status is SlashStatus.VETOED:
            self._once(("veto", key), "veto", f"{name} has its {amount} back")

    def _once(self, key: object, topic: str, text: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self._tell(topic, text)


class Narrator:
    """Tells everything with the time since the command was started."""

    def __init__(self, screen: Screen, started: float) -> None:
        self.screen = screen
        self.topic = "set-up"
        """Topic of what happens outside the job."""
        self._started = started

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def __call__(self, text: str) -> None:
        self.screen.starting(self.seconds, self.topic, text)

    def tell(self, topic: str, text: str) -> None:
        self.screen.tell(self.seconds, topic, text)


class JobFollower:
    """Called repeatedly, as `each` of a localnet."""

    def __init__(self, net: Localnet, narrator: Narrator) -> None:
        self._net = net
        self._narrator = narrator
        self._events = Events(net, narrator.tell)
        self._reader = JobStatusReader(net)
        self._looked = float("-inf")
        self.accuracies: dict[int, float] = {}
        self.last: JobStatus | None = None
        """The status when the job closed, before everybody left."""
        self._closed = False

    def __call__(self) -> None:
        self._events()
        just_closed = self._net.view.is_closed and not self._closed
        # Not at every call: the shown data come from processes that have other work to do.
        if just_closed or self._narrator.seconds >= self._looked + _LOOK_SECONDS:
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
        status = self._reader.now(self._narrator.seconds, self.accuracies)
        if not self._closed:
            self.last = status
            self._closed = self._net.view.is_closed
        self._narrator.screen.show(status)
