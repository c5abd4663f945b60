"""A rehearsed job: real contracts and transactions, made-up gradients and verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from eth_account.signers.local import LocalAccount
from eth_typing import Hash32
from eth_utils.crypto import keccak

from opfl_chain.chain import bls
from opfl_chain.chain.bindings.events import JobCreated, RoundOpened
from opfl_chain.chain.bindings.types import BatchProof, JobTerms, MemberFault, Phases, Verdict
from opfl_chain.chain.contracts.contract import Call, Receipt
from opfl_chain.chain.deployment import Contracts, deploy
from opfl_chain.chain.rpc import Rpc
from opfl_chain.chain.send.sender import TransactionSender
from opfl_chain.chain.terms import DEPOSIT, STAKE, default_terms
from opfl_chain.protocol import verdict as rules
from opfl_chain.protocol.accumulator import batch_tree
from opfl_chain.protocol.identifiers import Address, JobId, RoundId, job_and_number
from opfl_chain.protocol.randomness import audit_rate_of, proof_of_possession_message
from opfl_chain.protocol.statements import GradientCommitment, RoundResult, SigningDomain, Statement
from opfl_chain.system.closing import Closing

POLICY: Final = json.dumps({"model": "none", "purpose": "rehearsal"}).encode()
BOUNDARY: Final = json.dumps({"rule": "none", "purpose": "rehearsal"}).encode()

# Long enough for all transactions of a phase, at one block each.
PHASES: Final = Phases(
    enrol=300,
    commit=150,
    beacon=50,
    deliver=20,
    attest=50,
    finalise=50,
    request=50,
    veto=20,
)
UNBONDING_DELAY: Final = 500
COMMITTEE: Final = 3
ACCOUNTS_BESIDE_CLIENTS: Final = COMMITTEE + 2
DIRECT: Final = BatchProof(bytes(32), (), b"")
"""The proof of a commitment that is on chain itself."""


def rehearsal_terms(
    members: Sequence[Address],
    relayer: Address,
    treasury: Address,
    *,
    audit_rate: float,
    rounds: int,
) -> JobTerms:
    """Return the default terms with short phases and made-up documents."""
    terms = default_terms(
        policy_hash=keccak(POLICY),
        boundary_hash=keccak(BOUNDARY),
        model_hash=model_hash(0),
        members=members,
        relayer=relayer,
        treasury=treasury,
        audit_rate=audit_rate_of(audit_rate),
        rounds=rounds,
        phases=PHASES,
    )
    return replace(terms, unbonding_delay=UNBONDING_DELAY)


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

    The accounts are those of the operator, who makes the transitions that anyone may make, the
    relayer, three members, and as many clients as are left.
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
        names = ["operator", "relayer", *(f"member {i}" for i in range(COMMITTEE))]
        names += [f"client {i}" for i in range(len(accounts) - ACCOUNTS_BESIDE_CLIENTS)]
        actors = [
            Actor(name, account, self._open.enter_context(TransactionSender(rpc, account, folder)))
            for name, account in zip(names, accounts, strict=True)
        ]
        self.operator, self.relayer = actors[:2]
        self.members = actors[2:ACCOUNTS_BESIDE_CLIENTS]
        self.clients = actors[ACCOUNTS_BESIDE_CLIENTS:]
        self.keys = [bls.SecretKey.generate() for _ in self.members]
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
        return [self._register_key(i) for i in range(COMMITTEE)]

    def create_job(self, *, audit_rate: float, rounds: int) -> tuple[JobId, Receipt]:
        terms = rehearsal_terms(
            [member.address for member in self.members],
            self.relayer.address,
            self.operator.address,
            audit_rate=audit_rate,
            rounds=rounds,
        )
        call = self.contracts.jobs.create_job(terms, POLICY, BOUNDARY)
        receipt = self.send(self.operator, call)
        return JobCreated.in_receipt(receipt).job, receipt

    def join(self, job: JobId) -> list[Receipt]:
        call = self.contracts.jobs.join_committee(job, value=STAKE)
        return [self.send(member, call) for member in self.members]

    def enrol(self, job: JobId) -> list[Receipt]:
        enrol = self.contracts.jobs.enrol
        return [
            self.send(client, enrol(job, self.dataset_root(client), value=DEPOSIT))
            for client in self.clients
        ]

    # A round

    def open_round(self, job: JobId) -> tuple[RoundId, Receipt]:
        """Open the next round, past the enrolment deadline."""
        self.mine_past(self.contracts.jobs.progress(job).enrol_deadline)
        receipt = self.send(self.operator, self.contracts.jobs.open_round(job))
        return RoundOpened.in_receipt(receipt).round, receipt

    def commit(self, round_id: RoundId, clients: Iterable[Actor]) -> list[Receipt]:
        jobs = self.contracts.jobs
        return [
            self.send(client, jobs.commit_gradient(round_id, self.commitment(round_id, client)))
            for client in clients
        ]

    def commit_batch(
        self, round_id: RoundId, clients: Sequence[Actor]
    ) -> tuple[Mapping[str, BatchProof], Receipt]:
        """Relay signed commitments, and return what proves each of them."""
        job, number = job_and_number(round_id)
        pairs = [(client.address, self.commitment(round_id, client)) for client in clients]
        tree = batch_tree(job, number, pairs)
        proofs = {
            client.address: BatchProof(
                commitment,
                tuple(tree.proof(i)),
                client.sign(
                    GradientCommitment(job, number, client.address, commitment), self.domain
                ),
            )
            for i, (client, (_, commitment)) in enumerate(zip(clients, pairs, strict=True))
        }
        call = self.contracts.jobs.commit_batch(round_id, tree.root, len(pairs))
        return proofs, self.send(self.relayer, call)

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
        """Close the commit phase and let every member sign the beacon message."""
        self.mine_past(self.contracts.jobs.schedule(round_id).commit)
        message = self.contracts.beacon.message(round_id)
        return [key.sign(message) for key in self.keys]

    def audited(self, round_id: RoundId) -> list[Actor]:
        is_audited = self.contracts.beacon.is_audited
        return [client for client in self.clients if is_audited(round_id, client.address)]

    def attest(
        self, round_id: RoundId, verdict: rules.Verdict, members: Iterable[int]
    ) -> list[Receipt]:
        """Attest a verdict, after the time for delivery."""
        self.mine_past(self.contracts.jobs.schedule(round_id).deliver)
        call = self.contracts.jobs.attest(round_id, encoded(verdict))
        return [self.send(self.members[i], call) for i in members]

    def finalise(self, round_id: RoundId, aggregate: bytes, model: bytes) -> Receipt:
        job, number = job_and_number(round_id)
        decided = self.contracts.jobs.round(round_id).verdict_hash
        signatures = self.two_signatures(RoundResult(job, number, decided, aggregate, model))
        call = self.contracts.jobs.finalise(round_id, aggregate, model, signatures)
        return self.send(self.operator, call)

    # Money

    def request_slash(
        self,
        round_id: RoundId,
        client: Actor,
        verdict: rules.Verdict,
        position: int,
        proof: BatchProof = DIRECT,
    ) -> Receipt:
        call = self.contracts.slashing.request(
            round_id, client.address, encoded(verdict), position, proof
        )
        return self.send(self.operator, call)

    def execute_slash(self, round_id: RoundId, client: Actor) -> Receipt:
        """Execute a slash, after its veto window."""
        slash = self.contracts.slashing.slash_of(round_id, client.address)
        self.mine_past(slash.executable_at)
        return self.send(self.operator, self.contracts.slashing.execute(round_id, client.address))

    def penalise(self, round_id: RoundId, member: Actor, fault: MemberFault) -> Receipt:
        call = self.contracts.slashing.penalise_member(round_id, member.address, fault)
        return self.send(self.operator, call)

    def two_signatures(self, statement: Statement) -> tuple[bytes, bytes]:
        """Let the first two members sign."""
        first, second = (member.sign(statement, self.domain) for member in self.members[:2])
        return first, second

    def dataset_root(self, client: Actor) -> bytes:
        """Return the made-up root of a client's data set."""
        return keccak(text=f"data of {client.name}")

    def commitment(self, round_id: RoundId, client: Actor) -> bytes:
        """Return the made-up gradient commitment of a client."""
        return keccak(text=f"gradient of {client.name} in {round_id}")

    def _register_key(self, index: int) -> Receipt:
        key, member = self.keys[index], self.members[index]
        public = key.public_key.eip2537()
        statement = proof_of_possession_message(
            self.domain.chain_id, self.contracts.beacon.address, member.address, public
        )
        proof = key.prove_possession(statement).eip2537()
        return self.send(member, self.contracts.beacon.register_key(public, proof))


def encoded(verdict: rules.Verdict) -> Verdict:
    """Return a verdict as contracts take it."""
    return Verdict(verdict.passes_bytes, verdict.faults_bytes)
