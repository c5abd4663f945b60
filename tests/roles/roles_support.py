"""A job with a real policy on a real chain, and members and clients of it without MPC processes."""

import json
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property

import numpy as np
from opfl_chain.roles.claims import Claims
from opfl_chain.roles.member.enforcement import Enforcement

from opfl_chain.chain.bindings.events import JobCreated
from opfl_chain.chain.keys import SCRYPT_CHEAP, create_ethereum_key
from opfl_chain.chain.rpc import tohex
from opfl_chain.chain.terms import DEPOSIT
from opfl_chain.jobs.contract_demo.contract_job import PHASES, ContractJob, rehearsal_terms
from opfl_chain.jobs.localnet.plan import Plan
from opfl_chain.lab.calibration.reference import reference_boundary
from opfl_chain.protocol.commitments import Scheme, Subject
from opfl_chain.protocol.delivery import Delivery, InputDelivery, encode_delivery
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import job_and_number
from opfl_chain.protocol.inputs import dataset_tree
from opfl_chain.protocol.shares import commit, share_advice
from opfl_chain.protocol.statements import DeliveryEnvelope
from opfl_chain.roles.job_file import first_model_hash
from opfl_chain.roles.member.audits import Judging
from opfl_chain.roles.member.beacon import BeaconDuty
from opfl_chain.roles.member.endpoints import MemberEndpoints
from opfl_chain.roles.member.member import Member
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.member.sums import MemberSums
from opfl_chain.roles.model_store import Models
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.settings import AccountSettings, ChainSettings, NodeSettings
from opfl_chain.transport.client import HttpClient
from opfl_chain.transport.server import HttpServer

PASSWORD = "for tests"
AUDIT_RATE = 0.5
ROUNDS = 4


class DaemonRehearsal(ContractJob):
    """A rehearsal whose jobs have a policy and a boundary that daemons can read."""

    policy = Plan(audit_rate=AUDIT_RATE, dataset="synthetic").policy
    boundary = reference_boundary(policy)

    def create_real_job(self, *, phases=PHASES, rounds=ROUNDS, **changes):
        terms = rehearsal_terms(
            [member.address for member in self.members],
            self.relayer.address,
            self.operator.address,
            audit_rate=AUDIT_RATE,
            rounds=rounds,
        )
        facts = {
            "policy_hash": self.policy.hash,
            "boundary_hash": self.boundary.hash,
            "model_hash": first_model_hash(self.policy),
        }
        terms = replace(terms, phases=phases, **(facts | changes))
        call = self.contracts.jobs.create_job(
            terms, self.policy.canonical_json, self.boundary.canonical_json
        )
        return JobCreated.in_receipt(self.send(self.operator, call)).job

    def enrol_makers(self, job, makers):
        enrol = self.contracts.jobs.enrol
        for maker in makers:
            self.send(maker.actor, enrol(job, maker.tree.root, value=DEPOSIT))

    def commit_makers(self, round_id, makers):
        _, number = job_and_number(round_id)
        jobs = self.contracts.jobs
        for maker in makers:
            call = jobs.commit_gradient(round_id, maker.committed(number).commitment)
            self.send(maker.actor, call)

    def settings(self, actor, folder, job, **changes):
        """Settings as a file would have them."""
        folder.mkdir(parents=True, exist_ok=True)
        keystore = folder / "key.json"
        if not keystore.exists():
            create_ethereum_key(keystore, PASSWORD, account=actor.account, scrypt_n=SCRYPT_CHEAP)
            (folder / "password").write_text(PASSWORD)
            self.deployment.write(folder / "deployment.json")
        return NodeSettings(
            chain=ChainSettings(
                rpc_url=self._rpc.url, deployment=folder / "deployment.json", job=job
            ),
            account=AccountSettings(keystore=keystore, password_file=folder / "password"),
            state=folder / "state",
            **changes,
        )


class Maker:
    """A client with made-up numbers, but real commitments, shares and signatures."""

    def __init__(self, actor, expected, rounds=ROUNDS):
        self.actor = actor
        self._expected = expected
        self._rounds = rounds

    def _entropy(self, purpose, t):
        return keccak256(self.actor.name.encode(), purpose.encode(), bytes([t]))

    def _words(self, purpose, t, count):
        seed = int.from_bytes(self._entropy(purpose, t)[:8], "big")
        return np.random.default_rng(seed).integers(-(2**20), 2**20, count, dtype="<i8")

    def gradient(self, t):
        return self._words("gradient words", t, self._expected.gradient_words)

    def committed(self, t):
        entropy = self._entropy("gradient", t)
        return commit(Scheme.SHARES, Subject.GRADIENT, self.gradient(t), entropy)

    def committed_input(self, t):
        words = self._words("input words", t, self._expected.input_words)
        return commit(Scheme.SHARES, Subject.INPUT, words, self._entropy("input", t))

    @cached_property
    def tree(self):
        return dataset_tree(self.committed_input(t).commitment for t in range(self._rounds))

    def deliveries(self, t, *, audited):
        packages = self.committed(t).packages
        if not audited:
            return [Delivery(package) for package in packages]
        given = self.committed_input(t)
        advice = share_advice(
            Scheme.SHARES,
            self._words("advice", t, self._expected.advice_words),
            self._entropy("input", t),
        )
        proof = tuple(self.tree.proof(t))
        return [
            Delivery(
                packages[rank],
                InputDelivery(given.packages[rank], given.commitment, proof),
                advice[rank],
            )
            for rank in range(3)
        ]


class QuietMember(Node):
    """A member without its MPC process: nothing is compiled, and no session is joined."""

    ROLE = "committee"
    SCHEMA = Member.SCHEMA

    def __init__(self, settings, bls_key=None):
        super().__init__(settings)
        self.rank = list(self.job.members).index(self.address)
        self.store = MemberStore(self.state)
        self.models = Models(self.view, self.state)
        self.claims = Claims(self.view, self.state, self.peers)
        self.judging = Judging(self.job, self.rank, self.store, self.claims, self.models)
        self.sums = MemberSums(self.view, self.peers, self.judging, self.store, self.rank)
        self.enforcement = Enforcement(self, self.rank, self.store, self.claims)
        if bls_key is not None:
            self.beacon = BeaconDuty(self, self.rank, bls_key, self.store)

    @property
    def done(self):
        return False

    def act(self, now):
        """Do nothing: tests call the duties."""

    def routes(self):
        expected = self.judging.expected
        return MemberEndpoints(
            self, self.store, self.claims, self.models, expected, self.sums
        ).routes()

    def health(self):
        return {}

    def catch_up(self):
        step = self.cursor.catch_up()
        self._moment = Moment(step.position, step.target)
        return self._moment


class World:
    """A job with clients who enrolled, and its members, who answer over HTTP on this machine."""

    def __init__(self, rehearsal, folder, *, clients=6, ranks=(0, 1, 2), **terms):
        self.rehearsal = rehearsal
        self._open = ExitStack()
        self.job_id = rehearsal.create_real_job(**terms)
        rehearsal.join(self.job_id)
        self.members = {}
        for rank in ranks:
            settings = rehearsal.settings(
                rehearsal.members[rank], folder / f"member-{rank}", self.job_id
            )
            member = self._open.enter_context(QuietMember(settings, rehearsal.keys[rank]))
            self.members[rank] = member
            member.http = self._open.enter_context(HttpServer("127.0.0.1:0", member.routes()))
            call = rehearsal.contracts.jobs.announce_endpoint(self.job_id, member.http.url)
            rehearsal.send(rehearsal.members[rank], call)
        self.member = self.members[ranks[0]]
        expected = self.member.judging.expected
        self.makers = [Maker(client, expected) for client in rehearsal.clients[:clients]]
        rehearsal.enrol_makers(self.job_id, self.makers)
        self.http = self._open.enter_context(HttpClient(None, seconds=20, attempts=1))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._open.close()

    def catch_up(self):
        for member in self.members.values():
            member.catch_up()

    def open(self, direct=None):
        """Open a round; some commit directly."""
        self.round_id, _ = self.rehearsal.open_round(self.job_id)
        self.rehearsal.commit_makers(self.round_id, self.makers if direct is None else direct)
        self.catch_up()

    def settle(self):
        self.rehearsal.publish_beacon(self.round_id)
        self.catch_up()
        return self.round

    @property
    def round(self):
        return self.member.view.latest_round()

    def audited(self, maker):
        return self.member.view.is_audited(self.round, maker.actor.address)

    def body(self, maker, member=None, *, audited=None):
        """Return a correct delivery of a client to a member."""
        member = member or self.member
        audited = self.audited(maker) if audited is None else audited
        parts = maker.deliveries(self.round.number, audited=audited)
        return encode_delivery(parts[member.rank])

    def envelope(self, maker, body, addressee=None, **changes):
        member = addressee or self.member
        facts = {
            "job": self.job_id,
            "round": self.round.number,
            "client": maker.actor.address,
            "member": member.address,
            "content_hash": keccak256(body),
        }
        return maker.actor.sign(DeliveryEnvelope(**(facts | changes)), self.rehearsal.domain)

    def deliver(self, maker, body=None, signature=None, member=None, address=None, round_id=None):
        """Deliver, and return the member's answer; refusals are raised as a client sees them."""
        member = member or self.member
        body = self.body(maker, member) if body is None else body
        signature = self.envelope(maker, body, member) if signature is None else signature
        path = f"/rounds/{round_id or self.round_id}/deliveries/{address or maker.actor.address}"
        headers = {"Opfl-Signature": tohex(signature)}
        return json.loads(self.http.post(member.http.url, "", path, body, 1 << 16, headers=headers))
