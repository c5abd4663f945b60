"""The client: enrols, trains, commits, delivers, defends itself, and leaves with its money."""

from __future__ import annotations

import secrets
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from opfl_chain.attacks.attack import Attack
from opfl_chain.attacks.registry import attack_named
from opfl_chain.chain.bindings.types import ClientStatus, Reason, Role, SlashStatus
from opfl_chain.chain.rpc import tohex
from opfl_chain.chain.statement_signatures import SIGNATURE_BYTES, signer_of
from opfl_chain.nodes.chain_view import RoundView, SlashView
from opfl_chain.nodes.client_data import load_client_data
from opfl_chain.nodes.contribution import Contributor, Made
from opfl_chain.nodes.errors import ModelMissing
from opfl_chain.nodes.evidence import two_acquittals
from opfl_chain.nodes.misdelivery import Misdelivery
from opfl_chain.nodes.node import Moment, Node
from opfl_chain.nodes.peers import hex_field
from opfl_chain.nodes.settings import ClientSettings
from opfl_chain.protocol.delivery_message import encode_delivery
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.ring import Words
from opfl_chain.protocol.statements import (
    DeliveryEnvelope,
    DeliveryReceipt,
    GradientCommitment,
)
from opfl_chain.training.aggregate import weights_hash
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.routes import Route

_ASK_EVERY = 4
"""Blocks between two questions for an acquittal."""
_RELAY_MARGIN = 3
"""A batch must be on chain so many blocks before the deadline, or the client commits itself."""


class Client(Node):
    ROLE = "client"
    SCHEMA: ClassVar[str] = """
    CREATE TABLE IF NOT EXISTS secret (value BLOB);
    CREATE TABLE IF NOT EXISTS made (
        round INTEGER PRIMARY KEY, gradient BLOB, advice BLOB, attack BLOB
    );
    CREATE TABLE IF NOT EXISTS receipts (
        round INTEGER, member TEXT, audited INTEGER, signature BLOB, PRIMARY KEY (round, member)
    );
    CREATE TABLE IF NOT EXISTS relayed (round INTEGER PRIMARY KEY);
    """

    def __init__(self, settings: ClientSettings) -> None:
        super().__init__(settings)
        self._settings = settings
        self._misdelivery = Misdelivery.named(settings.cheat)
        self._attack: Attack | None = None
        if settings.cheat and self._misdelivery is None:
            self._attack = attack_named(settings.cheat)
        self._phase = "starting"
        self._left = False
        self._asked_at = 0

    @cached_property
    def contributor(self) -> Contributor:
        data = load_client_data(self.job.policy, self._settings.data, self._attack)
        return Contributor(
            self.job,
            data,
            self._secret(),
            threads=self._settings.threads,
            attack=self._attack,
        )

    @property
    def done(self) -> bool:
        return self._left

    def routes(self) -> list[Route]:
        return []

    def health(self) -> dict[str, Any]:
        rounds = self.state.one("SELECT count(*) FROM made")[0]
        return {"phase": self._phase, "contributions": rounds, "cheat": self._settings.cheat}

    # --- what is due

    def act(self, now: Moment) -> None:
        status = self.view.client_status(self.address)
        if status is ClientStatus.UNKNOWN:
            self._enrol(now)
            return
        for slash in self.view.slashes():
            if slash.client == self.address and slash.status is SlashStatus.REQUESTED:
                self._defend(slash, now)
        if self.view.is_closed or status is ClientStatus.LEAVING:
            self._leave(now)
            return
        round_ = self.view.latest_round()
        if round_ is None:
            self._phase = "waiting for the first round"
        elif round_.over is None:
            self._take_part(round_, now, status)

    def _enrol(self, now: Moment) -> None:
        self._phase = "enrolling"
        root = self.contributor.dataset.root
        call = self.job.contracts.jobs.enrol(self.job.id, root, value=self.job.terms.client_deposit)
        self.send(call, "enrol")

    def _take_part(self, round_: RoundView, now: Moment, status: ClientStatus) -> None:
        made = self._made(round_.number)
        if now.head < round_.schedule.commit and status is ClientStatus.ACTIVE:
            if made is None:
                self._phase = f"training for round {round_.number}"
                made = self._make(round_)
            self._commit(round_, made, now)
        if made is None or not round_.closed(now.seen):
            return
        if round_.settled(now.seen) and round_.verdict_hash is None:
            self._phase = f"delivering in round {round_.number}"
            self._deliver(round_, made)

    def _make(self, round_: RoundView) -> Made:
        size = 4 * self.contributor.parameters
        body = self.peers.fetch_weights(
            f"/models/{tohex(round_.model_hash)}",
            size,
            lambda data: (
                len(data) == size
                and weights_hash(np.frombuffer(data, "<f4").astype(np.float32)) == round_.model_hash
            ),
        )
        weights = np.frombuffer(body, "<f4").astype(np.float32)
        before = self.state.one("SELECT attack FROM made ORDER BY round DESC LIMIT 1")
        made = self.contributor.make(round_.number, weights, before[0] if before else None)
        self.state.write(
            "INSERT OR IGNORE INTO made VALUES (?, ?, ?, ?)",
            round_.number,
            made.gradient.tobytes(),
            None if made.advice is None else made.advice.tobytes(),
            made.attack_state,
        )
        self.state.write("DELETE FROM made WHERE round < ?", round_.number - 1)
        return made

    def _commit(self, round_: RoundView, made: Made, now: Moment) -> None:
        if self.address in self.view.direct_commitments(round_.id):
            return
        commitment = self.contributor.committed_gradient(round_.number, made.gradient).commitment
        if self._settings.commit == "relayed" and not self._must_commit_itself(round_, now):
            self._relay(round_, commitment)
            return
        self._phase = f"committing in round {round_.number}"
        call = self.job.contracts.jobs.commit_gradient(round_.id, commitment)
        self.send(call, f"commit {round_.number}")

    def _must_commit_itself(self, round_: RoundView, now: Moment) -> bool:
        """Whether the batch is late, or there without us."""
        batch = self.view.batch(round_.id)
        if batch is None:
            return now.head >= round_.schedule.commit - _RELAY_MARGIN
        try:
            path = f"/batches/{tohex(batch[0])}"
            members = self.peers.fetch_list(path)
        except ModelMissing:
            return True
        return self.address.lower().encode() not in members.lower()

    def _relay(self, round_: RoundView, commitment: bytes) -> None:
        if self.state.one("SELECT 1 FROM relayed WHERE round = ?", round_.number):
            return
        statement = GradientCommitment(self.job.id, round_.number, self.address, commitment)
        try:
            path = f"/rounds/{round_.id}/commitments/{self.address}"
            self.peers.post_to_server(path, commitment, self.sign(statement))
        except TransportError as error:
            self.log.warning("the server took no commitment", extra={"reason": str(error)})
            return
        self.state.write("INSERT OR IGNORE INTO relayed VALUES (?)", round_.number)

    def _deliver(self, round_: RoundView, made: Made) -> None:
        audited = self.view.is_audited(round_, self.address)
        members = [m for m in self.job.members if not self._receipt(round_.number, m)]
        if not members:
            return
        deliveries = self.contributor.deliveries(round_.number, made, audited=audited)
        if self._misdelivery is not None:
            deliveries = self._misdelivery.deliveries(
                deliveries, round_.number, self.contributor, audited=audited
            )
        for member, delivery in zip(self.job.members, deliveries, strict=False):
            if member in members:
                self._deliver_to(member, round_, encode_delivery(delivery), audited=audited)

    def _deliver_to(
        self, member: Address, round_: RoundView, body: bytes, *, audited: bool
    ) -> None:
        envelope = DeliveryEnvelope(
            self.job.id, round_.number, self.address, member, keccak256(body)
        )
        try:
            answer = self.peers.deliver(member, round_.id, self.address, body, self.sign(envelope))
            signature = hex_field(answer, "signature", SIGNATURE_BYTES)
        except TransportError as error:
            self.log.warning("not delivered", extra={"member": member, "reason": str(error)})
            return
        receipt = DeliveryReceipt(self.job.id, round_.number, self.address, audited)
        if signer_of(receipt, self.job.domain, signature) != member:
            self.log.warning("a receipt is not signed by its member", extra={"member": member})
            return
        self.state.write(
            "INSERT OR IGNORE INTO receipts VALUES (?, ?, ?, ?)",
            round_.number,
            member,
            audited,
            signature,
        )

    def _defend(self, slash: SlashView, now: Moment) -> None:
        """Veto a slash with what members signed: that we delivered, or that we were right."""
        if now.head + 1 >= slash.executable_at or now.head < self._asked_at + _ASK_EVERY:
            return
        self._asked_at = now.head
        round_ = self.view.round(slash.round)
        if round_ is None:
            return
        slashing = self.job.contracts.slashing
        if slash.reason is Reason.NOT_DELIVERED:
            receipts = [row[0] for row in self._receipts(slash.round)][:2]
            if len(receipts) == 2:
                signatures = (receipts[0], receipts[1])
                call = slashing.veto_with_receipts(round_.id, self.address, signatures)
                self.send(call, f"veto {slash.round}")
                return
        acquittals = two_acquittals(self.peers, self.job, round_, self.address)
        if acquittals is not None:
            call = slashing.veto_with_acquittals(round_.id, self.address, acquittals)
            self.send(call, f"veto {slash.round}")

    def _leave(self, now: Moment) -> None:
        self._phase = "leaving"
        unbond = self.job.contracts.jobs.unbond_deposit(self.job.id)
        self._left = self.take_money(Role.CLIENT, unbond, now)

    # --- what is kept

    def _secret(self) -> bytes:
        if (row := self.state.one("SELECT value FROM secret")) is None:
            self.state.write("INSERT INTO secret VALUES (?)", secrets.token_bytes(32))
            row = self.state.one("SELECT value FROM secret")
        return bytes(row[0])

    def _made(self, number: int) -> Made | None:
        row = self.state.one("SELECT gradient, advice, attack FROM made WHERE round = ?", number)
        return Made(_words(row[0]), row[1] and _words(row[1]), row[2]) if row else None

    def _receipt(self, number: int, member: Address) -> bool:
        statement = "SELECT 1 FROM receipts WHERE round = ? AND member = ?"
        return self.state.one(statement, number, member) is not None

    def _receipts(self, number: int) -> Any:
        return self.state.all("SELECT signature FROM receipts WHERE round = ?", number)


def _words(data: bytes) -> Words:
    return np.frombuffer(data, "<i8")
