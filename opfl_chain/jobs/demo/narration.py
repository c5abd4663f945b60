"""Follows a running job: tells each event once, shows its state, keeps what the result needs."""

from __future__ import annotations

import time
from collections.abc import Callable

from opfl_chain.chain.bindings.types import ChargeStatus, MemberFault, Outcome
from opfl_chain.jobs.demo.result import accuracies
from opfl_chain.jobs.demo.screen import Screen
from opfl_chain.jobs.demo.status import JobStatus, JobStatusReader, Mark
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.render.text import ether
from opfl_chain.roles.view.records import ChargeView, PenaltyView, RoundView, on_public_roll

Tell = Callable[[str, str], None]
_LOOK_SECONDS = 0.25

OUTCOMES = {
    Outcome.OUTSIDE: "its step is outside the boundary",
    Outcome.UNANSWERED: "it did not answer its audit",
}
FAULTS = {
    MemberFault.SILENCE: "it attested nothing",
    MemberFault.DISSENT: "it attested another verdict than the other two",
    MemberFault.ABSENCE: "it took no part in an audit or a sum",
    MemberFault.WITHHELD: "it withheld its part of the beacon",
    MemberFault.FALSEHOOD: "it stated a falsehood",
    MemberFault.EQUIVOCATION: "it signed two messages where one is allowed",
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
            if ("over", round_.opening) not in self._told:
                self._round(round_)
        for charge in self._net.view.charges():
            self._charge(charge)
        for penalty in self._net.view.penalties():
            self._penalty(penalty)
        self._seats()
        if self._net.view.is_closed:
            self._once("closed", "job", "closed: everybody claims its pay and withdraws")

    def accuracy(self, updates: int, accuracy: float) -> None:
        after = f"after {updates} update{'s'[: updates > 1]}" if updates else "of the first model"
        self._once(("accuracy", updates), "accuracy", f"{accuracy:.1%} {after}")

    def _round(self, round_: RoundView) -> None:
        view, opening = self._net.view, round_.opening
        topic = f"round {round_.number}"
        model = round_.model_hash.hex()[:8]
        self._once(("open", opening), topic, f"opened with model 0x{model}")
        if round_.roll is not None:
            self._once(("roll", opening), topic, self._roll(round_))
        if round_.seed is not None:
            audited = [
                self._names[client]
                for client in view.clients()
                if view.on_roll(round_, client) and view.is_audited(round_, client)
            ]
            self._once(
                ("beacon", opening),
                topic,
                f"beacon 0x{round_.seed.hex()[:8]} audits {', '.join(audited) or 'nobody'}",
            )
        if round_.verdict_hash is not None:
            self._once(("verdict", opening), topic, self._verdict(round_))
        if round_.over == "finalised":
            new = (round_.next_model_hash or b"").hex()[:8]
            self._once(("over", opening), topic, f"final, next model 0x{new}")
        elif round_.over is not None:
            self._once(("over", opening), topic, "void: the model is unchanged")

    def _roll(self, round_: RoundView) -> str:
        """Say how many are on the roll, and who might have been."""
        view = self._net.view
        missing = [
            self._names[client.address]
            for client in view.eligible(round_, on_public_roll)
            if not view.on_roll(round_, client.address)
        ]
        count = round_.roll.count if round_.roll else 0
        return "; ".join(
            [f"{count} on the roll", *(f"{name} is not on it, at no cost" for name in missing)]
        )

    def _verdict(self, round_: RoundView) -> str:
        view = self._net.view
        passed = Verdict.decode(view.decided_passes(round_) or b"").passed
        failed = [
            f"{self._names[address]} does not"
            for address, client in view.clients().items()
            if view.on_roll(round_, address) and client.index not in passed
        ]
        return "; ".join([f"{len(passed)} pass", *failed])

    def _charge(self, charge: ChargeView) -> None:
        key, name = (charge.round, charge.client, charge.held_at), self._names[charge.client]
        amount = ether(charge.held)
        where = f"of {name} for round {charge.round}"
        self._once(("hold", key), "audit", f"{amount} {where} set aside until it is decided")
        if charge.status is ChargeStatus.CHARGED and charge.outcome is not None:
            why = OUTCOMES[charge.outcome]
            self._once(("charge", key), "charge", f"{name} has lost {amount}: {why}")
        elif charge.status is ChargeStatus.ACQUITTED:
            told = f"{name} has its {amount} back: it answered in time and passed"
            self._once(("acquit", key), "acquittal", told)

    def _penalty(self, penalty: PenaltyView) -> None:
        name = self._names[penalty.member]
        amount = ether(penalty.amount) if penalty.amount else "nothing more: it has no stake left"
        told = f"{name} pays {amount} for round {penalty.round}"
        key = ("penalty", penalty.round, penalty.member, penalty.fault)
        self._once(key, "penalty", f"{told}: {FAULTS[penalty.fault]}")

    def _seats(self) -> None:
        view = self._net.view
        if epoch := view.epoch:
            seats = ", ".join(self._names[member] for member in view.seats())
            told = f"change {epoch}: the seats of later rounds are {seats}"
            self._once(("seats", epoch), "seats", told)

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
        """The status when the job was closed and every audit decided, before everybody left."""
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
            undecided = any(Mark.HELD in marks for marks in status.grid.values())
            self._closed = self._net.view.is_closed and not undecided
        self._narrator.screen.show(status)
