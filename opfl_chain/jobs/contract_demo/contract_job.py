"""A rehearsed job: real contracts and transactions, made-up gradients and verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from eth_account.signers.local import LocalAccount
from eth_typing import Hash32
from eth_utils.crypto import keccak

from opfl_chain.chain import bls
from opfl_chain.chain.bindings import types
from opfl_chain.chain.bindings.events import JobCreated, RoundOpened
from opfl_chain.chain.bindings.types import JobTerms, MemberFault, Outcome, Phases
from opfl_chain.chain.contracts.contract import Call, Receipt
from opfl_chain.chain.deployment import Contracts, deploy
from opfl_chain.chain.rpc import Rpc
from opfl_chain.chain.send.sender import TransactionSender
from opfl_chain.chain.terms import DEPOSIT, STAKE, budget, default_terms
from opfl_chain.protocol import statements
from opfl_chain.protocol.bundle import content_hash
from opfl_chain.protocol.identifiers import (
    Address,
    ClientIndex,
    JobId,
    RoundId,
    RoundNumber,
    job_and_number,
)
from opfl_chain.protocol.randomness import audit_rate_of, proof_of_possession_message
from opfl_chain.protocol.roll import Roll, RollEntry
from opfl_chain.protocol.statements import AuditOutcome, Contribution, SigningDomain, Statement
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.system.closing import Closing

POLICY: Final = json.dumps({"model": "none", "purpose": "rehearsal"}).encode()
BOUNDARY: Final = json.dumps({"rule": "none", "purpose": "rehearsal"}).encode()

# Long enough for all transactions of a phase, at one block each.
PHASES: Final = Phases(
    enrol=300,
    deliver=20,
    roll=20,
    beacon=50,
    answer=20,
    attest=50,
    finalise=50,
    response=50,
)
COMMITTEE: Final = 3
STANDBYS: Final = 1
ACCOUNTS_BESIDE_CLIENTS: Final = 1 + COMMITTEE + STANDBYS


def rehearsal_terms(
    members: Sequence[Address],
    treasury: Address,
    *,
    standbys: Sequence[Address] = (),
    audit_rate: float,
    rounds: int,
    public_roll: bool = True,
) -> JobTerms:
    """Return the default terms with short phases and made-up documents."""
    terms = default_terms(
        policy_hash=keccak(POLICY),
        boundary_hash=keccak(BOUNDARY),
        model_hash=model_hash(0),
        members=members,
        standbys=standbys,
        treasury=treasury,
        audit_rate=audit_rate_of(audit_rate),
        rounds=rounds,
        phases=PHASES,
    )
    return replace(terms, public_roll=public_roll)


def model_hash(round_number: int) -> bytes:
    """Return the made-up hash of the model that a round starts from."""
    return keccak(text=f"model {round_number}")


@dataclass(frozen=True)
class Actor:
    """An account, and the sender of its transactions."""

    name: str
    account: LocalAccount
    sender: TransactionSender

    @property
    def address(self) -> str:
        return self.sender.address

    def sign(self, statement: Statement, domain: SigningDomain) -> bytes:
        digest = Hash32(statement.digest(domain))
        return bytes(self.account.unsafe_sign_hash(digest).signature)


class ContractJob(Closing):
    """Deploys the contracts with the first account; leave it to close the senders.

    The accounts are those of the operator, who makes the transitions that anyone may make, three
    members, a standby, and as many clients as are left.
    """

    def __init__(
        self,
        rpc: Rpc,
        accounts: Sequence[LocalAccount],
        mine: Callable[[int], None],
        folder: Path,
    ) -> None:
        self._rpc = rpc
        self._mine = mine
        self._steps = 0
        self._open = ExitStack()
        names = ["operator", *(f"member {i}" for i in range(COMMITTEE)), "standby"]
        names += [f"client {i}" for i in range(len(accounts) - ACCOUNTS_BESIDE_CLIENTS)]
        actors = [
            Actor(name, account, self._open.enter_context(TransactionSender(rpc, account, folder)))
            for name, account in zip(names, accounts, strict=True)
        ]
        self.operator = actors[0]
        self.members = actors[1 : 1 + COMMITTEE]
        self.standby = actors[1 + COMMITTEE]
        self.clients = actors[ACCOUNTS_BESIDE_CLIENTS:]
        self.roster = [*self.members, self.standby]
        self.keys = [bls.SecretKey.generate() for _ in self.roster]
        self.deployment = deploy(self.operator.sender, rpc)
        self.contracts: Contracts = self.deployment.connect(rpc)
        self.domain = SigningDomain(rpc.chain_id(), self.contracts.jobs.address)

    def close(self) -> None:
        self._open.close()

    def send(self, actor: Actor, call: Call) -> Receipt:
        """Send a transaction of its own, even if the same call was sent before."""
        self._steps += 1
        return actor.sender.send(call, f"step {self._steps}")

    def mine_past(self, block: int) -> None:
        """Mine so that the next transaction stands after `block`."""
        missing = block - self._rpc.block_number()
        if missing > 0:
            self._mine(missing)

    def balance(self, address: str) -> int:
        return self._rpc.balance(address)

    # Before the first round

    def register_keys(self) -> list[Receipt]:
        return [self._register_key(i) for i in range(len(self.roster))]

    def create_job(
        self, *, audit_rate: float, rounds: int, public_roll: bool = True
    ) -> tuple[JobId, Receipt]:
        terms = rehearsal_terms(
            [member.address for member in self.members],
            self.operator.address,
            standbys=[self.standby.address],
            audit_rate=audit_rate,
            rounds=rounds,
            public_roll=public_roll,
        )
        call = self.contracts.jobs.create_job(terms, POLICY, BOUNDARY, value=budget(terms))
        receipt = self.send(self.operator, call)
        return JobCreated.in_receipt(receipt).job, receipt

    def join(self, job: JobId) -> list[Receipt]:
        join = self.contracts.jobs.join_committee
        return [
            self.send(member, join(job, self.sealing_key(member), value=STAKE))
            for member in self.roster
        ]

    def enrol(self, job: JobId) -> list[Receipt]:
        enrol = self.contracts.jobs.enrol
        return [
            self.send(client, enrol(job, self.dataset_root(client), value=DEPOSIT))
            for client in self.clients
        ]

    # A round

    def open_round(self, job: JobId) -> tuple[RoundId, Receipt]:
        """Open the next round, past the enrolment deadline."""
        self.mine_past(self.contracts.jobs.participants(job).enrol_deadline)
        receipt = self.send(self.operator, self.contracts.rounds.open_round(job))
        return RoundOpened.in_receipt(receipt).round, receipt

    def roll(self, round_id: RoundId, *, is_public: bool = True) -> Roll:
        """Return the roll of all clients, which are enrolled in their order."""
        return Roll.of(
            (
                RollEntry(
                    ClientIndex(index),
                    client.address,
                    self.commitment(round_id, client),
                    self.content_hash(round_id, client),
                )
                for index, client in enumerate(self.clients)
            ),
            is_public,
        )

    def commit_roll(self, round_id: RoundId, *, is_public: bool = True) -> Receipt:
        roll = self.roll(round_id, is_public=is_public)
        statement = statements.Roll(*self._about(round_id), roll.root, roll.count, roll.pairs_hash)
        call = self.contracts.rounds.commit_roll(
            round_id, roll.root, roll.count, roll.pairs, self.two_signatures(statement)
        )
        return self.send(self.operator, call)

    def publish_beacon(self, round_id: RoundId) -> Receipt:
        signature = bls.aggregate_signatures(self.partial_signatures(round_id))
        call = self.contracts.beacon.publish(round_id, signature.eip2537())
        return self.send(self.operator, call)

    def publish_partials(self, round_id: RoundId, members: Iterable[int]) -> list[Receipt]:
        partials = self.partial_signatures(round_id)
        return [
            self.send(
                self.members[i],
                self.contracts.beacon.publish_partial(
                    round_id, self.members[i].address, partials[i].eip2537()
                ),
            )
            for i in members
        ]

    def partial_signatures(self, round_id: RoundId) -> list[bls.Signature]:
        """Let every member sign the beacon message."""
        message = self.contracts.beacon.message(round_id)
        return [key.sign(message) for key in self.keys[:COMMITTEE]]

    def audited(self, round_id: RoundId) -> list[Actor]:
        is_audited = self.contracts.beacon.is_audited
        return [client for client in self.clients if is_audited(round_id, client.address)]

    def attest(self, round_id: RoundId, verdict: Verdict, members: Iterable[int]) -> list[Receipt]:
        opening = self.contracts.rounds.round(round_id).opening
        call = self.contracts.rounds.attest(round_id, opening, verdict.passes_bytes)
        return [self.send(self.members[i], call) for i in members]

    def finalise(self, round_id: RoundId, aggregate: bytes, model: bytes) -> Receipt:
        decided = self.contracts.rounds.round(round_id).verdict_hash
        statement = statements.RoundResult(*self._about(round_id), decided, aggregate, model)
        call = self.contracts.rounds.finalise(
            round_id, aggregate, model, self.two_signatures(statement)
        )
        return self.send(self.operator, call)

    # Money

    def hold(self, round_id: RoundId, client: Actor, verdict: Verdict) -> Receipt:
        """Set the penalty of a client aside whose audit did not pass."""
        index = ClientIndex(self.clients.index(client))
        content = self.content_hash(round_id, client)
        signed = Contribution(*self._about(round_id), client.address, content)
        entry = types.RollEntry(
            self.commitment(round_id, client),
            self.rest_hash(round_id, client),
            tuple(self.roll(round_id).proof(index)),
            client.sign(signed, self.domain),
        )
        call = self.contracts.charges.hold(round_id, client.address, verdict.passes_bytes, entry)
        return self.send(self.operator, call)

    def charge(self, round_id: RoundId, client: Actor, outcome: Outcome) -> Receipt:
        signatures = self._outcome_signatures(round_id, client, outcome)
        call = self.contracts.charges.charge(round_id, client.address, outcome, signatures)
        return self.send(self.operator, call)

    def acquit(self, round_id: RoundId, client: Actor) -> Receipt:
        signatures = self._outcome_signatures(round_id, client, Outcome.PASSED)
        call = self.contracts.charges.acquit(round_id, client.address, signatures)
        return self.send(self.operator, call)

    def penalise(self, round_id: RoundId, member: Actor, fault: MemberFault) -> Receipt:
        call = self.contracts.charges.penalise(round_id, member.address, fault)
        return self.send(self.operator, call)

    def certify(self, round_id: RoundId, member: Actor, fault: MemberFault) -> Receipt:
        """Penalise a member with the signatures of the first two."""
        statement = statements.MemberFaultStatement(*self._about(round_id), member.address, fault)
        call = self.contracts.charges.penalise_certified(
            round_id, member.address, fault, self.two_signatures(statement)
        )
        return self.send(self.operator, call)

    def change_seat(self, job: JobId, seat: int) -> Receipt:
        """Give a seat to the standby, with the signatures of the first two members."""
        epoch = self.contracts.jobs.participants(job).epoch
        statement = statements.SeatChange(job, epoch, seat, self.standby.address)
        call = self.contracts.jobs.change_seat(
            job, seat, self.standby.address, self.two_signatures(statement)
        )
        return self.send(self.operator, call)

    def claim(
        self, client: Actor, rounds: Sequence[RoundId], verdicts: Sequence[Verdict]
    ) -> Receipt:
        passes = tuple(verdict.passes_bytes for verdict in verdicts)
        call = self.contracts.rewards.claim_contributions(client.address, tuple(rounds), passes)
        return self.send(client, call)

    def claim_service(self, member: Actor, rounds: Sequence[RoundId]) -> Receipt:
        call = self.contracts.rewards.claim_service(member.address, tuple(rounds))
        return self.send(member, call)

    def two_signatures(self, statement: Statement) -> tuple[bytes, bytes]:
        """Let the first two members sign."""
        first, second = (member.sign(statement, self.domain) for member in self.members[:2])
        return first, second

    def sealing_key(self, member: Actor) -> bytes:
        """Return the made-up sealing key of a member."""
        return b"\x02" + keccak(text=f"sealing key of {member.name}")

    def dataset_root(self, client: Actor) -> bytes:
        """Return the made-up root of a client's data set."""
        return keccak(text=f"data of {client.name}")

    def commitment(self, round_id: RoundId, client: Actor) -> bytes:
        """Return the made-up gradient commitment of a client."""
        return keccak(text=f"gradient of {client.name} in {round_id}")

    def rest_hash(self, round_id: RoundId, client: Actor) -> bytes:
        """Return the made-up hash of the rest of a client's bundle."""
        return keccak(text=f"bundle of {client.name} in {round_id}")

    def content_hash(self, round_id: RoundId, client: Actor) -> bytes:
        return content_hash(self.commitment(round_id, client), self.rest_hash(round_id, client))

    def _about(self, round_id: RoundId) -> tuple[JobId, RoundNumber, bytes]:
        """Return the fields that open every statement about a round."""
        job, number = job_and_number(round_id)
        return job, number, self.contracts.rounds.round(round_id).opening

    def _outcome_signatures(
        self, round_id: RoundId, client: Actor, outcome: Outcome
    ) -> tuple[bytes, bytes]:
        return self.two_signatures(AuditOutcome(*self._about(round_id), client.address, outcome))

    def _register_key(self, index: int) -> Receipt:
        key, member = self.keys[index], self.roster[index]
        public = key.public_key.eip2537()
        statement = proof_of_possession_message(
            self.domain.chain_id, self.contracts.beacon.address, member.address, public
        )
        proof = key.prove_possession(statement).eip2537()
        return self.send(member, self.contracts.beacon.register_key(public, proof))
