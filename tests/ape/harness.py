"""The protocol deployed through ape, with its roster and clients, and a round as one call."""

import re
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from eth_utils.crypto import keccak

from opfl_chain.chain import bls
from opfl_chain.chain.bindings.types import Pay, Phases
from opfl_chain.chain.terms import budget, default_penalties, default_terms, shortest_unbonding
from opfl_chain.protocol.bundle import content_hash
from opfl_chain.protocol.economics import ETHER
from opfl_chain.protocol.identifiers import ClientIndex, round_id_of
from opfl_chain.protocol.randomness import (
    audit_rate_of,
    beacon_message,
    proof_of_possession_message,
)
from opfl_chain.protocol.roll import Roll, RollEntry
from opfl_chain.protocol.statements import Contribution, SigningDomain
from opfl_chain.protocol.statements import Roll as RollStatement

POLICY, BOUNDARY = b'{"model":"lenet"}', b'{"alpha":3}'
DEPOSIT, STAKE = ETHER, 2 * ETHER
PAY = Pay(client=ETHER // 100, member=ETHER // 50)
PHASES = Phases(
    enrol=20, deliver=10, roll=10, beacon=20, answer=10, attest=20, finalise=20, response=20
)
COMMITTEE = 3


@dataclass
class Protocol:
    """The contracts and their participants: the roster is three members and a standby."""

    deposits: Any
    beacon: Any
    jobs: Any
    rounds: Any
    charges: Any
    rewards: Any
    chain: Any
    roster: list[Any]
    clients: list[Any]
    treasury: Any
    keys: list[bls.SecretKey] = field(default_factory=list)

    def terms(self, audit_probability):
        addresses = [member.address for member in self.roster]
        terms = default_terms(
            policy_hash=keccak(POLICY),
            boundary_hash=keccak(BOUNDARY),
            model_hash=keccak(b"model 0"),
            members=addresses[:COMMITTEE],
            standbys=addresses[COMMITTEE:],
            treasury=self.treasury.address,
            audit_rate=audit_rate_of(audit_probability),
            rounds=2,
            phases=PHASES,
        )
        return replace(
            terms,
            client_deposit=DEPOSIT,
            member_stake=STAKE,
            unbonding_delay=shortest_unbonding(PHASES),
            penalties=default_penalties(DEPOSIT, STAKE),
            pay=PAY,
        )

    def register_keys(self):
        for member in self.roster:
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
        terms = self.terms(audit_probability)
        self.jobs.createJob(
            as_contract_names(asdict(terms)),
            POLICY,
            BOUNDARY,
            value=budget(terms),
            sender=self.treasury,
        )
        job = self.jobs.jobCount()
        for member in self.roster:
            sealing_key = b"\x02" + keccak(member.address.encode())
            self.jobs.joinCommittee(job, sealing_key, value=STAKE, sender=member)
        for client in self.clients:
            self.jobs.enrol(job, keccak(b"data"), value=DEPOSIT, sender=client)
        return job

    def open_round(self, job):
        """Open the next round, past the enrolment deadline if it is the first."""
        number = self.rounds.progress(job).nextRound
        if number == 0:
            self.mine_past(self.jobs.participants(job).enrolDeadline)
        self.rounds.openRound(job, sender=self.treasury)
        return round_id_of(job, number)

    def opening(self, round_id):
        return bytes(self.rounds.round(round_id).opening)

    def content(self, client):
        """Return the made-up commitment, rest hash and content hash of a client."""
        commitment, rest = keccak(client.address.encode()), keccak(b"rest")
        return commitment, rest, content_hash(commitment, rest)

    def roll(self):
        return Roll.of(
            RollEntry(
                ClientIndex(i), client.address, self.content(client)[0], self.content(client)[2]
            )
            for i, client in enumerate(self.clients)
        )

    def commit_roll(self, job, number, members=(0, 1)):
        round_id = round_id_of(job, number)
        roll = self.roll()
        statement = RollStatement(
            job, number, self.opening(round_id), roll.root, roll.count, roll.pairs_hash
        )
        return self.rounds.commitRoll(
            round_id,
            roll.root,
            roll.count,
            roll.pairs,
            self.signatures(statement, members),
            sender=self.treasury,
        )

    def roll_entry(self, job, number, client):
        """Return the evidence that a client contributed."""
        account = self.clients[client]
        commitment, rest, content = self.content(account)
        opening = self.opening(round_id_of(job, number))
        statement = Contribution(job, number, opening, account.address, content)
        signature = sign(account, statement.digest(self.domain))
        return commitment, rest, list(self.roll().proof(ClientIndex(client))), signature

    def message(self, job, number):
        opening, root = self.rounds.rollOf(round_id_of(job, number))
        return beacon_message(
            self.chain.chain_id, self.beacon.address, job, number, bytes(opening), bytes(root)
        )

    def publish_beacon(self, job, number):
        message = self.message(job, number)
        signature = bls.aggregate_signatures([key.sign(message) for key in self.keys[:COMMITTEE]])
        return self.beacon.publish(
            round_id_of(job, number), signature.eip2537(), sender=self.treasury
        )

    def attest(self, round_id, verdict, members=(0, 1, 2)):
        opening = self.rounds.rollOf(round_id)[0]
        return [
            self.rounds.attest(round_id, opening, verdict.passes_bytes, sender=self.roster[member])
            for member in members
        ]

    def signatures(self, statement, members=(0, 1)):
        """Sign a statement by two members."""
        digest = statement.digest(self.domain)
        return [sign(self.roster[member], digest) for member in members]

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
