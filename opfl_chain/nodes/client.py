"""The client: enrols, trains, commits, delivers, defends itself, and leaves with its money."""

from __future__ import annotations

import secrets
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from opfl_chain.attacks.attack import Attack
from opfl_chain.attacks.registry import attack_named
from opfl_chain.chain.bindings.types import ClientStatus, Reason, Role
from opfl_chain.chain.rpc import tohex
from opfl_chain.chain.statement_signatures import SIGNATURE_BYTES, signer_of
from opfl_chain.mpc.ranks import MEMBERS
from opfl_chain.nodes.batches import Batch, Entry
from opfl_chain.nodes.chain_view import RoundView, SlashView
from opfl_chain.nodes.client_data import load_client_data
from opfl_chain.nodes.contribution import Contributor, Made
from opfl_chain.nodes.errors import JobUnusable
from opfl_chain.nodes.evidence import two_acquittals
from opfl_chain.nodes.misdelivery import Misdelivery
from opfl_chain.nodes.node import Moment, Node
from opfl_chain.nodes.patience import Patience
from opfl_chain.nodes.peers import hex_field
from opfl_chain.nodes.pushing import Pushing
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
        self._asking = Patience(first=1.0, last=10.0)
        self._delivering = Patience(first=0.5, last=10.0)
        self._pushing = Pushing(self)
        self._listed_in: int | None = None
        if self.address in self.job.members:
            self.close()
            raise JobUnusable(
                f"{self.address} is a member of job {self.job.id}: a client needs an account of its"
                " own, because an account has one sender"
            )

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
        for slash in self.view.pending_slashes():
            if slash.client == self.address:
                with self.duty(f"defence in round {slash.round}"):
                    self._defend(slash, now)
        over = self.view.is_closed or self.view.is_stillborn(now.seen)
        if over or status is ClientStatus.LEAVING:
            self._leave(now)
            return
        round_ = self.view.latest_round()
        if round_ is None:
            self._phase = "waiting for the first round"
        elif round_.over is None:
            with self.duty(f"round {round_.number}"):
                self._take_part(round_, now, status)
        with self.duty("moving on"):
            # After the server and all members: if they are gone, this is how we get our money.
            own = self.view.client(self.address)
            self._pushing.act(now, MEMBERS + 1 + (own.index if own else 0))

    def _enrol(self, now: Moment) -> None:
        end = self.job.enrolment_end
        if now.seen >= end:
            raise JobUnusable(
                f"clients enrolled in job {self.job.id} until block {end}, and {self.address} did"
                " not: wait for another job"
            )
        if now.head < end:
            self._phase = "enrolling"
            self.contributor.warm()
            root, deposit = self.contributor.dataset.root, self.job.terms.client_deposit
            self.send(self.job.contracts.jobs.enrol(self.job.id, root, value=deposit), "enrol")

    def _take_part(self, round_: RoundView, now: Moment, status: ClientStatus) -> None:
        made = self._made(round_.number)
        if now.head < round_.schedule.commit and status is ClientStatus.ACTIVE:
            if made is None:
                self._require_own_data()
                self._phase = f"training for round {round_.number}"
                made = self._make(round_)
            self._commit(round_, made, now)
        in_time = round_.settled(now.seen) and now.head <= round_.schedule.deliver
        if made is not None and in_time and round_.verdict_hash is None:
            self._deliver(round_, made)

    def _require_own_data(self) -> None:
        """An audit compares what we train on with what we committed to when we enrolled."""
        own, root = self.view.client(self.address), self.contributor.dataset.root
        if own is not None and own.root != root:
            raise JobUnusable(
                f"{self.address} enrolled with the data set {tohex(own.root)}, and the settings and"
                f" the secret in {self.settings.state} make {tohex(root)}: an audit would cost the"
                " deposit. Give back both as they were"
            )

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
        if self.view.direct_commitment(round_.id, self.address) is not None:
            return
        if self._listed_in == round_.number:
            return
        commitment = self.contributor.committed_gradient(round_.number, made.gradient).commitment
        if self._settings.commit == "relayed":
            statement = GradientCommitment(self.job.id, round_.number, self.address, commitment)
            entry = Entry(self.address, commitment, self.sign(statement))
            if not self._must_commit_itself(round_, entry, now):
                self._relay(round_, entry)
                return
        self._phase = f"committing in round {round_.number}"
        call = self.job.contracts.jobs.commit_gradient(round_.id, commitment)
        self.send(call, f"commit {round_.number}")

    def _must_commit_itself(self, round_: RoundView, entry: Entry, now: Moment) -> bool:
        """Whether the batch is late, or there without us as far as anyone shows."""
        if (batch := self.view.batch(round_.id)) is None:
            return now.head >= round_.schedule.commit - _RELAY_MARGIN
        root, most = batch[0], Batch.most_bytes(len(self.view.clients()))
        for body in self.peers.lists(f"/batches/{tohex(root)}", most):
            found = Batch.decode(self.job, round_.number, root, body)
            if found is not None and entry in found.entries:
                self._listed_in = round_.number
                return False
        return True

    def _relay(self, round_: RoundView, entry: Entry) -> None:
        known = self.state.one("SELECT 1 FROM relayed WHERE round = ?", round_.number)
        if known or self._listed_in == round_.number:
            return
        try:
            path = f"/rounds/{round_.id}/commitments/{self.address}"
            self.peers.post_to_server(path, entry.commitment, entry.signature)
        except TransportError as error:
            self.log.warning("the server took no commitment", extra={"reason": str(error)})
            return
        self.state.write("INSERT OR IGNORE INTO relayed VALUES (?)", round_.number)

    def _deliver(self, round_: RoundView, made: Made) -> None:
        direct = self.view.direct_commitment(round_.id, self.address) is not None
        if not direct and self.view.batch(round_.id) is None:
            return  # we were late, and are not in the round
        audited, number = self.view.is_audited(round_, self.address), round_.number
        receipts = self._receipts(number, audited=audited)
        members = [member for member in self.job.members if member not in receipts]
        if not members or not self._delivering.is_due(f"{number} {audited}"):
            return
        self._phase = f"delivering in round {number}"
        self._delivering.failed(f"{number} {audited}")
        deliveries = self.contributor.deliveries(number, made, audited=audited)
        if self._misdelivery is not None:
            deliveries = self._misdelivery.deliveries(
                deliveries, number, self.contributor, audited=audited
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
            "INSERT OR REPLACE INTO receipts VALUES (?, ?, ?, ?)",
            round_.number,
            member,
            audited,
            signature,
        )

    def _defend(self, slash: SlashView, now: Moment) -> None:
        """Veto a slash with what members signed: that we delivered, or that we were right."""
        round_, what = self.view.round(slash.round), f"round {slash.round}"
        if now.head + 1 >= slash.executable_at or round_ is None or not self._asking.is_due(what):
            return
        self._asking.failed(what)
        slashing = self.job.contracts.slashing
        if slash.reason is Reason.NOT_DELIVERED:
            audited = self.view.is_audited(round_, self.address)
            receipts = list(self._receipts(slash.round, audited=audited).values())
            if len(receipts) >= 2:
                signatures = (receipts[0], receipts[1])
                call = slashing.veto_with_receipts(round_.id, self.address, signatures)
                self.send(call, f"veto {slash.round} with receipts")
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

    def _receipts(self, number: int, *, audited: bool) -> dict[Address, bytes]:
        """The members' signatures. A receipt without an input is none if we are audited."""
        return dict(
            self.state.all(
                "SELECT member, signature FROM receipts WHERE round = ? AND audited = ?",
                number,
                audited,
            )
        )


def _words(data: bytes) -> Words:
    return np.frombuffer(data, "<i8")
