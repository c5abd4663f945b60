"""A job with a real policy on a real chain, played without daemons, and nodes that follow it."""

import json
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property

from contract_player import PHASES, ContractPlayer

from opfl_chain.chain.bindings.events import JobCreated, RoundOpened
from opfl_chain.chain.keys import SCRYPT_CHEAP, create_ethereum_key
from opfl_chain.chain.rpc import checksum, tohex, unhex
from opfl_chain.chain.terms import DEPOSIT, STAKE, budget, default_terms
from opfl_chain.lab.calibration.reference import reference_boundary
from opfl_chain.mpc.audit.judge import Rules
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.mpc.replay.replays import Replays
from opfl_chain.protocol.bundle import Bundle
from opfl_chain.protocol.bundle_form import BundleKind, Limits
from opfl_chain.protocol.sealing import derived_key
from opfl_chain.roles.job_file import first_model_hash
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.settings import AccountSettings, ChainSettings, NodeSettings
from opfl_chain.transport.routes import Refusal, Response, Route
from opfl_chain.transport.server import HttpServer

PASSWORD = "for tests"
AUDIT_RATE = 0.5
ROUNDS = 4
KINDS = {"contributions": BundleKind.CONTRIBUTION, "answers": BundleKind.ANSWER}


class JobPlayer(ContractPlayer):
    """A player whose jobs have a policy and a boundary that daemons can read."""

    policy = default_policy("lenet-61706", batch_size=8, audit_rate=AUDIT_RATE)
    boundary = reference_boundary(policy)

    def sealing_key(self, actor):
        return derived_key(b"\7" * 32, actor.name.encode())

    def create_real_job(self, *, rounds=ROUNDS, standbys=True, phases=PHASES, **changes):
        terms = default_terms(
            policy_hash=self.policy.hash,
            boundary_hash=self.boundary.hash,
            model_hash=first_model_hash(self.policy),
            members=[member.address for member in self.members],
            standbys=[standby.address for standby in self.standbys] if standbys else (),
            treasury=self.treasury.address,
            audit_rate=self.policy.audit_rate,
            rounds=rounds,
            phases=phases,
        )
        terms = replace(terms, **changes)
        call = self.contracts.jobs.create_job(
            terms, self.policy.canonical_json, self.boundary.canonical_json, value=budget(terms)
        )
        return JobCreated.in_receipt(self.send(self.operator, call)).job

    def join(self, job, actors):
        for actor in actors:
            key = self.sealing_key(actor).public
            self.send(actor, self.contracts.jobs.join_committee(job, key, value=STAKE))

    def enrol_root(self, job, client, root):
        self.send(client, self.contracts.jobs.enrol(job, root, value=DEPOSIT))

    def announce(self, job, actor, url):
        self.send(actor, self.contracts.jobs.announce_endpoint(job, url))

    def reopened(self, job, chain, depth):
        """Undo the last blocks, the opening of a round among them, and open it again.

        The treasury does: the operator's sender would send again what it had sent.
        """
        chain.reorg(depth)
        receipt = self.send(self.treasury, self.contracts.rounds.open_round(job))
        return RoundOpened.in_receipt(receipt)

    def settings(self, actor, folder, job, kind=NodeSettings, **changes):
        """Settings as a file would have them."""
        folder.mkdir(parents=True, exist_ok=True)
        keystore = folder / "key.json"
        if not keystore.exists():
            create_ethereum_key(keystore, PASSWORD, account=actor.account, scrypt_n=SCRYPT_CHEAP)
            (folder / "password").write_text(PASSWORD)
            self.deployment.write(folder / "deployment.json")
        return kind(
            chain=ChainSettings(
                rpc_url=self.rpc.url, deployment=folder / "deployment.json", job=job
            ),
            account=AccountSettings(keystore=keystore, password_file=folder / "password"),
            state=folder / "state",
            **changes,
        )


class QuietNode(Node):
    """A daemon that does nothing by itself: tests call its duties."""

    ROLE = "quiet"

    @property
    def done(self):
        return False

    def act(self, now):
        """Do nothing."""

    def routes(self):
        return []

    def health(self):
        return {}

    def catch_up(self):
        step = self.cursor.catch_up()
        self._moment = Moment(step.position, step.target)
        return self._moment


class Mailbox:
    """Takes bundles as a member does, and opens them with its sealing key."""

    def __init__(self, player, actor, seat):
        self.address, self.seat = actor.address, seat
        self.key = player.sealing_key(actor)
        self.refuses = False
        self.posted = []
        """Kind, client, body and signature of everything that was posted, refused or not."""
        self.contents = {}
        """Contents that are served by path, such as models."""
        routes = [
            Route("POST", f"/rounds/{{round}}/{name}/{{client}}", self._taker(kind), 1 << 24)
            for name, kind in KINDS.items()
        ]
        routes += [
            Route("GET", "/models/{hash}", self._serve),
            Route("GET", "/aggregates/{hash}", self._serve),
            Route("GET", "/rounds/{round}/result", self._serve),
        ]
        self.server = HttpServer("127.0.0.1:0", routes)

    @cached_property
    def expected(self):
        return Rules(JobPlayer.policy, JobPlayer.boundary, Replays(JobPlayer.policy)).expected(0)

    def bundles(self, kind):
        """All bundles of a kind that were posted, with their signatures."""
        limits = Limits.of(kind, self.expected)
        return [
            (Bundle.decode(body, limits), signature)
            for each, _, body, signature in self.posted
            if each is kind
        ]

    def _taker(self, kind):
        def take(request):
            signature = unhex(request.headers["opfl-signature"])
            client = checksum(request.parts["client"])
            self.posted.append((kind, client, request.body, signature))
            if self.refuses:
                raise Refusal(410, "too late")
            bundle = Bundle.decode(request.body, Limits.of(kind, self.expected))
            return Response.json({"content_hash": tohex(bundle.content_hash)})

        return take

    def _serve(self, request):
        if (found := self.contents.get(request.path)) is None:
            raise Refusal(404, "not here")
        return Response.binary(found if isinstance(found, bytes) else json.dumps(found).encode())


class Committee:
    """Mailboxes of all members of a job, at the endpoints that they announced."""

    def __init__(self, player, job):
        self._open = ExitStack()
        self.boxes = []
        for seat, member in enumerate(player.members):
            box = Mailbox(player, member, seat)
            self._open.enter_context(box.server)
            player.announce(job, member, box.server.url)
            self.boxes.append(box)

    def __enter__(self):
        return self.boxes

    def __exit__(self, *exc):
        self._open.close()
