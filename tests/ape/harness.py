"""The protocol deployed through ape, with three members and clients, and a round as one call."""

import re
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from eth_utils.crypto import keccak

from opfl_chain.chain import bls
from opfl_chain.chain.bindings.types import Phases
from opfl_chain.chain.terms import default_penalties, default_terms
from opfl_chain.protocol.economics import ETHER
from opfl_chain.protocol.identifiers import round_id_of
from opfl_chain.protocol.randomness import (
    audit_rate_of,
    beacon_message,
    proof_of_possession_message,
)
from opfl_chain.protocol.statements import SigningDomain

POLICY, BOUNDARY = b'{"model":"lenet"}', b'{"alpha":3}'
DEPOSIT, STAKE = ETHER, 2 * ETHER
PHASES = Phases(
    enrol=20, commit=20, beacon=20, deliver=10, attest=20, finalise=20, request=20, veto=10
)
PENALTIES = replace(
    default_penalties(DEPOSIT, STAKE), input_not_committed=DEPOSIT // 2, verdict_dissent=STAKE // 8
)


@dataclass
class Protocol:
    """The contracts and their participants."""

    deposits: Any
    jobs: Any
    beacon: Any
    slashing: Any
    chain: Any
    members: list[Any]
    clients: list[Any]
    relayer: Any
    treasury: Any
    keys: list[bls.SecretKey] = field(default_factory=list)

    def terms(self, audit_probability=1.0):
        terms = default_terms(
            policy_hash=keccak(POLICY),
            boundary_hash=keccak(BOUNDARY),
            model_hash=keccak(b"model 0"),
            members=[member.address for member in self.members],
            relayer=self.relayer.address,
            treasury=self.treasury.address,
            audit_rate=audit_rate_of(audit_probability),
            rounds=2,
            phases=PHASES,
        )
        changed = replace(
            terms,
            client_deposit=DEPOSIT,
            member_stake=STAKE,
            unbonding_delay=150,
            penalties=PENALTIES,
        )
        return as_contract_names(asdict(changed))

    def register_keys(self):
        for member in self.members:
            key = bls.SecretKey.generate()
            public = key.public_key.eip2537()
            statement = proof_of_possession_message(
                self.chain.chain_id, self.beacon.address, member.address, public
            )
            proof = key.prove_possession(statement).eip2537()
            self.beacon.registerKey(public, proof, sender=member)
            self.keys.append(key)

    def start_job(self, audit_probability=1.0):
        """Create a job, enrol everyone and return its number."""
        self.jobs.createJob(self.terms(audit_probability), POLICY, BOUNDARY, sender=self.treasury)
        job = self.jobs.jobCount()
        for member in self.members:
            self.jobs.joinCommittee(job, value=STAKE, sender=member)
        for client in self.clients:
            self.jobs.enrol(job, keccak(b"data"), value=DEPOSIT, sender=client)
        return job

    def open_round(self, job):
        """Open the next round, past the enrolment deadline if it is the first."""
        progress = self.jobs.progress(job)
        if progress.nextRound == 0:
            self.mine_past(progress.enrolDeadline)
        self.jobs.openRound(job, sender=self.treasury)
        return round_id_of(job, progress.nextRound)

    def message(self, job, number):
        accumulator = bytes(self.jobs.accumulator(round_id_of(job, number)))
        return beacon_message(self.chain.chain_id, self.beacon.address, job, number, accumulator)

    def publish_beacon(self, job, number):
        round_id = round_id_of(job, number)
        self.mine_past(self.jobs.schedule(round_id).commit)
        message = self.message(job, number)
        signature = bls.aggregate_signatures([key.sign(message) for key in self.keys])
        return self.beacon.publish(round_id, signature.eip2537(), sender=self.treasury)

    def attest(self, round_id, verdict, members=(0, 1, 2)):
        for member in members:
            self.jobs.attest(
                round_id,
                (verdict.passes_bytes, verdict.faults_bytes),
                sender=self.members[member],
            )

    def signatures(self, statement, members=(0, 1)):
        """Sign a statement by two members."""
        digest = statement.digest(self.domain)
        return [sign(self.members[member], digest) for member in members]

    @property
    def domain(self):
        return SigningDomain(self.chain.chain_id, self.jobs.address)

    def mine_past(self, block):
        """Mine until the next transaction comes after `block`."""
        missing = block - self.chain.blocks.height
        if missing > 0:
            self.chain.mine(missing)


def sign(account, digest):
    return account.sign_raw_msghash(digest).encode_rsv()


def as_contract_names(fields):
    """Return nested fields by the names that they have in the contracts."""
    return {
        re.sub(r"_(.)", lambda found: found[1].upper(), name): (
            as_contract_names(value) if isinstance(value, dict) else value
        )
        for name, value in fields.items()
    }
