"""All parties of a job on a real chain, with made-up gradients and verdicts, and no daemons."""

from contextlib import ExitStack
from dataclasses import dataclass, replace

from eth_account.signers.local import LocalAccount
from eth_utils.crypto import keccak

from opfl_chain.chain import bls
from opfl_chain.chain.bindings.events import JobCreated, RoundOpened
from opfl_chain.chain.bindings.types import Outcome, Phases, Role
from opfl_chain.chain.bindings.types import RollEntry as RollEvidence
from opfl_chain.chain.deployment import deploy
from opfl_chain.chain.keys import sign_statement
from opfl_chain.chain.send.sender import TransactionSender
from opfl_chain.chain.terms import DEPOSIT, STAKE, budget, default_terms
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import job_and_number
from opfl_chain.protocol.randomness import (
    audit_rate_of,
    beacon_message,
    is_audited,
    proof_of_possession_message,
    seed_of_signature,
)
from opfl_chain.protocol.roll import Roll, RollEntry
from opfl_chain.protocol.statements import (
    AuditOutcome,
    Contribution,
    MemberFaultStatement,
    MemberMessage,
    RoundResult,
    SeatChange,
    SigningDomain,
)
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.system.closing import Closing

POLICY = b'{"purpose":"play"}'
BOUNDARY = b'{"rule":"none"}'
CLIENTS, MEMBERS, STANDBYS = 8, 3, 2
ACCOUNTS = 2 + MEMBERS + STANDBYS + CLIENTS
PENALTY = DEPOSIT * 6 // 10
"""Less than a deposit: two audits of one client take more than it has."""
# Long enough for all transactions of a phase, at one block each.
PHASES = Phases(
    enrol=60, deliver=10, roll=10, beacon=10, answer=10, attest=17, finalise=20, response=30
)


@dataclass(frozen=True)
class Actor:
    name: str
    account: LocalAccount
    sender: TransactionSender

    @property
    def address(self):
        return self.sender.address


@dataclass(frozen=True)
class PlayedRoll:
    """The contributions of a round, and what shows each of them on chain."""

    roll: Roll
    evidence: dict[str, RollEvidence]
    """By client."""


def model_hash(number):
    return keccak(text=f"model {number}")


def passes_of(indices):
    return Verdict.of(indices).passes_bytes


class ContractPlayer(Closing):
    """Deploys the contracts with the first account, which also makes the permissionless steps."""

    def __init__(self, chain, accounts, folder):
        self.rpc, self._mine, self._steps, self._open = chain.rpc, chain.mine, 0, ExitStack()
        names = ["operator", "treasury", *(f"member {i}" for i in range(MEMBERS))]
        names += [f"standby {i}" for i in range(STANDBYS)]
        names += [f"client {i}" for i in range(CLIENTS)]
        senders = (
            self._open.enter_context(TransactionSender(self.rpc, a, folder)) for a in accounts
        )
        actors = [Actor(*each) for each in zip(names, accounts, senders, strict=True)]
        self.operator, self.treasury = actors[:2]
        self.members = actors[2 : 2 + MEMBERS]
        self.standbys = actors[2 + MEMBERS : -CLIENTS]
        self.clients = actors[-CLIENTS:]
        self.keys = {
            member.address: bls.SecretKey((7 + i).to_bytes(32, "big"))
            for i, member in enumerate(self.roster)
        }
        self.deployment = deploy(self.operator.sender, self.rpc)
        self.contracts = self.deployment.connect(self.rpc)
        self.domain = SigningDomain(self.rpc.chain_id(), self.contracts.jobs.address)

    @property
    def roster(self):
        return [*self.members, *self.standbys]

    def close(self):
        self._open.close()

    def send(self, actor, call):
        """Send a transaction of its own, even if the same call was sent before."""
        self._steps += 1
        return actor.sender.send(call, f"step {self._steps}")

    def mine_past(self, block):
        """Mine so that the next transaction stands after `block`."""
        missing = block - self.rpc.block_number()
        if missing > 0:
            self._mine(missing)

    def two(self, statement, signers=None):
        """Return the signatures of the first two members, or of these."""
        signers = signers or self.members[:2]
        return tuple(sign_statement(actor.account, statement, self.domain) for actor in signers)

    # Before the first round

    def register_keys(self):
        for member in self.roster:
            key = self.keys[member.address]
            public = key.public_key.eip2537()
            statement = proof_of_possession_message(
                self.domain.chain_id, self.contracts.beacon.address, member.address, public
            )
            proof = key.prove_possession(statement).eip2537()
            self.send(member, self.contracts.beacon.register_key(public, proof))

    def create_job(self, *, audit_rate=0.5, rounds=1, standbys=True, **changes):
        terms = default_terms(
            policy_hash=keccak(POLICY),
            boundary_hash=keccak(BOUNDARY),
            model_hash=model_hash(0),
            members=[member.address for member in self.members],
            standbys=[standby.address for standby in self.standbys] if standbys else (),
            treasury=self.treasury.address,
            audit_rate=audit_rate_of(audit_rate),
            rounds=rounds,
            phases=PHASES,
        )
        terms = replace(terms, penalties=replace(terms.penalties, client=PENALTY), **changes)
        call = self.contracts.jobs.create_job(terms, POLICY, BOUNDARY, value=budget(terms) + 7)
        return JobCreated.in_receipt(self.send(self.operator, call)).job

    def join(self, job, actors):
        for actor in actors:
            key = b"\x02" + keccak(text=f"sealing key of {actor.name}")
            self.send(actor, self.contracts.jobs.join_committee(job, key, value=STAKE))

    def enrol(self, job, clients=None):
        for client in clients or self.clients:
            root = keccak(text=f"data of {client.name}")
            self.send(client, self.contracts.jobs.enrol(job, root, value=DEPOSIT))

    # A round

    def open_round(self, job):
        self.mine_past(self.contracts.jobs.participants(job).enrol_deadline)
        receipt = self.send(self.operator, self.contracts.rounds.open_round(job))
        return RoundOpened.in_receipt(receipt).round

    def schedule(self, round_id):
        return self.contracts.rounds.schedule(round_id)

    def opening(self, round_id):
        return self.contracts.rounds.round(round_id).opening

    def of_round(self, round_id, kind, *fields):
        """Return a statement about a round."""
        return kind(*job_and_number(round_id), self.opening(round_id), *fields)

    def roll(self, round_id, indices, chosen=lambda root: True):
        """Return a roll of these clients with a root that is `chosen`."""
        clients = [self.clients[index] for index in indices]
        for attempt in range(10_000):
            # Stands for all that clients contribute beside their commitments.
            rest = keccak(text=f"rest {attempt}")
            roll = Roll.of(
                RollEntry(index, client.address, commitment, keccak256(commitment, rest))
                for index, client in zip(indices, clients, strict=True)
                for commitment in [keccak(text=f"gradient of {client.name} in {round_id}")]
            )
            if chosen(roll.root):
                break
        else:
            raise AssertionError("no roll is chosen")
        opening, evidence = self.opening(round_id), {}
        for client, entry in zip(clients, roll.entries, strict=True):
            statement = Contribution(
                *job_and_number(round_id), opening, client.address, entry.content_hash
            )
            signature = sign_statement(client.account, statement, self.domain)
            path = roll.proof(entry.client)
            evidence[client.address] = RollEvidence(entry.commitment, rest, path, signature)
        return PlayedRoll(roll, evidence)

    def roll_with(self, job, round_id, indices, *, audited=(), spared=()):
        """Return a roll whose beacon selects and spares these clients: the player has all keys."""
        rate = self.contracts.jobs.audit_rate(job)
        opening, seats = self.opening(round_id), self.contracts.rounds.seats_of(round_id)

        def selects(seed, index):
            return is_audited(seed, self.clients[index].address, rate)

        def chosen(root):
            partials = self.partials(round_id, opening, root, seats)
            seed = seed_of_signature(bls.aggregate_signatures(list(partials.values())).eip2537())
            return all(selects(seed, i) for i in audited) and not any(
                selects(seed, i) for i in spared
            )

        return self.roll(round_id, indices, chosen)

    def commit_roll(self, round_id, played, *, public=True):
        roll = replace(played.roll, is_public=public)
        statement = roll.statement(*job_and_number(round_id), self.opening(round_id))
        call = self.contracts.rounds.commit_roll(
            round_id, roll.root, roll.count, roll.pairs, self.two(statement)
        )
        return self.send(self.operator, call)

    def partials(self, round_id, opening, root, seats):
        """Return the signatures over a roll, by member."""
        beacon = self.contracts.beacon.address
        message = beacon_message(
            self.domain.chain_id, beacon, *job_and_number(round_id), opening, root
        )
        return {member: self.keys[member].sign(message) for member in seats}

    def signed(self, round_id, roll):
        seats = self.contracts.rounds.seats_of(round_id)
        return self.partials(round_id, self.opening(round_id), roll.roll.root, seats)

    def publish_beacon(self, round_id, roll):
        total = bls.aggregate_signatures(list(self.signed(round_id, roll).values()))
        self.send(self.operator, self.contracts.beacon.publish(round_id, total.eip2537()))

    def publish_partials(self, round_id, roll, members):
        partials = self.signed(round_id, roll)
        for member in members:
            signature = partials[member.address].eip2537()
            call = self.contracts.beacon.publish_partial(round_id, member.address, signature)
            self.send(member, call)

    def attest(self, round_id, indices, members):
        opening = self.opening(round_id)
        call = self.contracts.rounds.attest(round_id, opening, passes_of(indices))
        for member in members:
            self.send(member, call)

    def finalise(self, round_id, signers=None):
        number = job_and_number(round_id)[1]
        decided = self.contracts.rounds.round(round_id).verdict_hash
        hashes = keccak(text=f"sum {number}"), model_hash(number + 1)
        statement = self.of_round(round_id, RoundResult, decided, *hashes)
        call = self.contracts.rounds.finalise(round_id, *hashes, self.two(statement, signers))
        return self.send(self.operator, call)

    def void(self, round_id, deadline):
        self.mine_past(deadline)
        self.send(self.operator, self.contracts.rounds.void_round(round_id))

    # Money

    def hold(self, round_id, roll, passed, index):
        client = self.clients[index].address
        call = self.contracts.charges.hold(
            round_id, client, passes_of(passed), roll.evidence[client]
        )
        return self.send(self.operator, call)

    def charge(self, round_id, index, outcome, signers=None):
        client = self.clients[index].address
        statement = self.of_round(round_id, AuditOutcome, client, outcome.value)
        signatures = self.two(statement, signers)
        call = self.contracts.charges.charge(round_id, client, outcome, signatures)
        return self.send(self.operator, call)

    def acquit(self, round_id, index):
        client = self.clients[index].address
        statement = self.of_round(round_id, AuditOutcome, client, Outcome.PASSED.value)
        call = self.contracts.charges.acquit(round_id, client, self.two(statement))
        return self.send(self.operator, call)

    def penalise(self, round_id, member, fault):
        self.send(self.operator, self.contracts.charges.penalise(round_id, member.address, fault))

    def certify(self, round_id, member, fault, signers):
        statement = self.of_round(round_id, MemberFaultStatement, member.address, fault.value)
        call = self.contracts.charges.penalise_certified(
            round_id, member.address, fault, self.two(statement, signers)
        )
        self.send(self.operator, call)

    def show_equivocation(self, round_id, member, slot):
        hashes = keccak(text="yes"), keccak(text="no")
        signatures = tuple(
            sign_statement(
                member.account, self.of_round(round_id, MemberMessage, slot, each), self.domain
            )
            for each in hashes
        )
        call = self.contracts.charges.penalise_equivocation(
            round_id, member.address, slot, hashes, signatures
        )
        self.send(self.operator, call)

    def change_seat(self, job, seat, standby, signers=None):
        epoch = self.contracts.jobs.participants(job).epoch
        statement = SeatChange(job, epoch, seat, standby.address)
        call = self.contracts.jobs.change_seat(
            job, seat, standby.address, self.two(statement, signers)
        )
        self.send(self.operator, call)

    def claim(self, client, rounds, verdicts):
        call = self.contracts.rewards.claim_contributions(
            client.address, tuple(rounds), tuple(map(passes_of, verdicts))
        )
        self.send(client, call)

    def claim_service(self, member, rounds):
        self.send(member, self.contracts.rewards.claim_service(member.address, tuple(rounds)))

    def refund(self, job):
        self.send(self.operator, self.contracts.rewards.refund(job))

    def leave(self, job, actors, role):
        """Unbond and withdraw the stakes of these accounts."""
        jobs = self.contracts.jobs
        unbond = jobs.unbond_deposit if role is Role.CLIENT else jobs.unbond_stake
        for actor in actors:
            last = self.send(actor, unbond(job)).block_number
        self.mine_past(last + self.contracts.jobs.terms(job).unbonding_delay)
        for actor in actors:
            self.send(actor, self.contracts.deposits.withdraw(job, role))
