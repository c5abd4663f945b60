"""What happens in a job, told once and in words."""

from __future__ import annotations

from collections.abc import Callable

from opfl_chain.chain.bindings.types import Reason, SlashStatus
from opfl_chain.localnet.localnet import Localnet
from opfl_chain.nodes.chain_view import RoundView, SlashView

Tell = Callable[[str, str], None]

REASONS = {
    Reason.COMMITMENT_MISMATCH: "its shares do not open its commitment",
    Reason.NOT_DELIVERED: "it delivered nothing",
    Reason.INPUT_NOT_COMMITTED: "its input is not in its data set",
    Reason.REPLAY_OUTSIDE: "its replay is outside the boundary",
}


class Events:
    """Called again and again, as `each` of a localnet. Tells a topic and a sentence."""

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
            self._once("closed", "job", "closed: who has money here asks for it back")

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
            self._once(("over", number), topic, "void: the model stays as it was")

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
        amount = f"{slash.captured / 10**18:g} ETH"
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
