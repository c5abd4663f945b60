"""The client: enrols, trains, commits, delivers, defends itself, and leaves with its money."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from opfl_chain.chain.bindings.types import ClientStatus, Reason, Role
from opfl_chain.chain.keys import signer_of
from opfl_chain.chain.rpc import tohex
from opfl_chain.mpc.session.ranks import MEMBERS
from opfl_chain.protocol.delivery import encode_delivery
from opfl_chain.protocol.exchange import proof_context
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address, RoundNumber, round_id_of
from opfl_chain.protocol.signatures import SIGNATURE_BYTES
from opfl_chain.protocol.statements import DeliveryEnvelope, DeliveryReceipt, GradientCommitment
from opfl_chain.roles.claims import Batch, Entry
from opfl_chain.roles.client import store as client_store
from opfl_chain.roles.client.conduct import Conduct, LocalContribution
from opfl_chain.roles.client.contribution import Contributor, load_client_data
from opfl_chain.roles.client.store import ClientStore
from opfl_chain.roles.evidence import two_acquittals
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.peers import hex_field
from opfl_chain.roles.round_driver import RoundDriver
from opfl_chain.roles.settings import ClientSettings, JobUnusable
from opfl_chain.roles.view.view import RoundView, SlashView
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.routes import Route

_RELAY_MARGIN = 3
"""The client commits directly if no batch is on chain this many blocks before the deadline."""


class Client(Node):
    ROLE = "client"
    SCHEMA: ClassVar[str] = (
        client_store.SCHEMA
        + """
    CREATE TABLE IF NOT EXISTS receipts (
        round INTEGER, member TEXT, audited INTEGER, signature BLOB, PRIMARY KEY (round, member)
    );
    CREATE TABLE IF NOT EXISTS relayed (round INTEGER PRIMARY KEY);
    """
    )

    def __init__(self, settings: ClientSettings, conduct: Conduct | None = None) -> None:
        """Make a client; it is honest unless a conduct is given."""
        super().__init__(settings)
        self._settings = settings
        self._store = ClientStore(self.state)
        self._conduct = conduct or Conduct()
        self._phase = "starting"
        self._left = False
        self._asking = self.backoff(first=1.0, last=10.0)
        self._delivering = self.backoff(first=0.5, last=10.0)
        self._round_driver = RoundDriver(self)
        self._listed_in: int | None = None
        if self.address in self.job.members:
            self.close()
            raise JobUnusable(
                f"{self.address} is a member of job {self.job.id}: a client needs an account of its"
                " own, because an account has one sender"
            )

    @cached_property
    def contributor(self) -> Contributor:
        data = load_client_data(self.job.policy, self._settings.data, self._conduct)
        return Contributor(
            self.job.policy,
            self.job.boundary,
            data,
            self._store.secret(),
            self._conduct,
            rounds=self.job.terms.rounds,
            threads=self._settings.threads,
            name_contribution=self._name_contribution,
        )

    def _name_contribution(
        self, t: int, model_hash: bytes, gradient: bytes, training_input: bytes
    ) -> bytes:
        own = self.view.client(self.address)
        if own is None:
            raise JobUnusable(f"{self.address} has not enrolled in job {self.job.id}")
        round_id = round_id_of(self.job.id, RoundNumber(t))
        separator = self.job.domain.separator
        return proof_context(separator, round_id, own.index, model_hash, gradient, training_input)

    @property
    def done(self) -> bool:
        return self._left

    def routes(self) -> list[Route]:
        return []

    def health(self) -> dict[str, Any]:
        rounds = self.state.one("SELECT count(*) FROM contributions")[0]
        return {"phase": self._phase, "contributions": rounds, "cheat": self._settings.cheat}

    # --- duties

    def act(self, now: Moment) -> None:
        status = self.view.client_status(self.address)
        if status is ClientStatus.UNKNOWN:
            self._enrol(now)
            return
        for slash in self.view.pending_slashes():
            if slash.client == self.address:
                with self.duty(f"defence in round {slash.round}"):
                    self._defend(slash, now)
        over = self.view.is_closed or self.is_stillborn(now)
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
            # Our turn is after the server and all members: without them, this frees our deposit.
            own = self.view.client(self.address)
            self._round_driver.act(now, MEMBERS + 1 + (own.index if own else 0))

    def _enrol(self, now: Moment) -> None:
        end = self.job.enrolment_end
        if now.has_seen(end):
            raise JobUnusable(
                f"enrolment in job {self.job.id} ended at block {end}, and {self.address} had not"
                " enrolled: wait for another job"
            )
        if not now.has_come(end):
            self._phase = "enrolling"
            self.contributor.warm()
            root, deposit = self.contributor.dataset.root, self.job.terms.client_deposit
            self.send(self.job.contracts.jobs.enrol(self.job.id, root, value=deposit), "enrol")

    def _take_part(self, round_: RoundView, now: Moment, status: ClientStatus) -> None:
        contribution = self._store.contribution(round_.number)
        if not now.has_come(round_.schedule.commit) and status is ClientStatus.ACTIVE:
            if contribution is None:
                self._require_own_data()
                self._phase = f"training for round {round_.number}"
                contribution = self._train(round_)
                if contribution.refusal:
                    reason = {"round": round_.number, "reason": contribution.refusal}
                    self.log.warning("sitting the round out", extra=reason)
            if not contribution.refusal:
                self._commit(round_, contribution, now)
        if contribution is not None and contribution.refusal:
            self._phase = f"sitting round {round_.number} out: {contribution.refusal}"
            return
        in_time = now.knows_audited(round_) and not now.has_come(round_.schedule.deliver + 1)
        if contribution is not None and in_time and round_.verdict_hash is None:
            self._deliver(round_, contribution)

    def _require_own_data(self) -> None:
        """Require the data set that we enrolled with: audits compare the training input with it."""
        own, root = self.view.client(self.address), self.contributor.dataset.root
        if own is not None and own.root != root:
            raise JobUnusable(
                f"{self.address} enrolled with the data set {tohex(own.root)}, but the settings and"
                f" the secret in {self.settings.state} make {tohex(root)}: an audit would cost the"
                " deposit. Restore both as they were"
            )

    def _train(self, round_: RoundView) -> LocalContribution:
        weights = self.peers.fetch_weights(round_.model_hash, self.contributor.parameters)
        made = self.contributor.make(round_.number, weights, self._store.last_memory())
        self._store.keep_contribution(round_.number, made)
        return made

    def _commit(self, round_: RoundView, contribution: LocalContribution, now: Moment) -> None:
        if self.view.direct_commitment(round_.id, self.address) is not None:
            return
        if self._listed_in == round_.number:
            return
        committed = self.contributor.committed_gradient(round_.number, contribution.gradient)
        commitment = committed.commitment
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
        """Return whether the batch is late, or nobody has a list of it that contains us."""
        if (batch := self.view.batch(round_.id)) is None:
            return now.has_come(round_.schedule.commit - _RELAY_MARGIN)
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
            self.log.warning("commitment not relayed", extra={"reason": str(error)})
            self.agenda.again()
            return
        self.state.write("INSERT OR IGNORE INTO relayed VALUES (?)", round_.number)

    def _deliver(self, round_: RoundView, contribution: LocalContribution) -> None:
        direct = self.view.direct_commitment(round_.id, self.address) is not None
        if not direct and self.view.batch(round_.id) is None:
            return  # too late: not in this round
        audited, number = self.view.is_audited(round_, self.address), round_.number
        receipts = self._receipts(number, audited=audited)
        if len(receipts) == MEMBERS or not self._delivering.is_due(f"{number} {audited}"):
            return
        self._phase = f"delivering in round {number}"
        self._delivering.failed(f"{number} {audited}")
        deliveries = self._conduct.deliveries(
            self.contributor, number, contribution, audited=audited
        )
        path = f"/rounds/{round_.id}/deliveries/{self.address}"
        for member, delivery in zip(self.job.members, deliveries, strict=False):
            if member in receipts:
                continue
            body = encode_delivery(delivery)
            envelope = DeliveryEnvelope(self.job.id, number, self.address, member, keccak256(body))
            try:
                answer = self.peers.post_to_member(member, path, body, self.sign(envelope))
                self._keep_receipt(number, member, answer, audited=audited)
            except TransportError as error:
                self.log.warning("not delivered", extra={"member": member, "reason": str(error)})

    def _keep_receipt(
        self, number: RoundNumber, member: Address, answer: dict[str, Any], *, audited: bool
    ) -> None:
        signature = hex_field(answer, "signature", SIGNATURE_BYTES)
        receipt = DeliveryReceipt(self.job.id, number, self.address, audited)
        if signer_of(receipt, self.job.domain, signature) != member:
            self.log.warning("receipt not signed by the member", extra={"member": member})
            return
        self.state.write(
            "INSERT OR REPLACE INTO receipts VALUES (?, ?, ?, ?)",
            number,
            member,
            audited,
            signature,
        )

    def _defend(self, slash: SlashView, now: Moment) -> None:
        """Veto a slash with members' signatures: receipts of our delivery, or acquittals."""
        round_, what = self.view.round(slash.round), f"round {slash.round}"
        late = now.has_come(slash.executable_at - 1)
        if late or round_ is None or not self._asking.is_due(what):
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

    # --- storage

    def _receipts(self, number: int, *, audited: bool) -> dict[Address, bytes]:
        """Receipts by member. If we are audited, one without the input does not count."""
        return dict(
            self.state.all(
                "SELECT member, signature FROM receipts WHERE round = ? AND audited = ?",
                number,
                audited,
            )
        )
