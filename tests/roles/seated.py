"""Real members of a job of proved steps in one process, and clients that contribute to it."""

from contextlib import ExitStack
from dataclasses import replace

import httpx
from played import PASSWORD, JobPlayer

from opfl_chain.chain.bindings.events import RoundOpened
from opfl_chain.chain.bindings.types import Phases
from opfl_chain.chain.keys import SCRYPT_CHEAP, create_bls_key, sign_statement
from opfl_chain.chain.rpc import tohex
from opfl_chain.lab.calibration.reference import reference_boundary
from opfl_chain.learning.data.datasets import load_dataset
from opfl_chain.learning.data.partition import ClientData
from opfl_chain.learning.registry import model_of
from opfl_chain.learning.seeded import initial_parameters
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.audit_exchange import proof_context
from opfl_chain.protocol.bundle import context, seal
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.statements import Answer, Contribution
from opfl_chain.roles.client.conduct import Conduct
from opfl_chain.roles.client.contribution import Contributor
from opfl_chain.roles.member.member import Member
from opfl_chain.roles.node import Moment
from opfl_chain.roles.settings import MemberSettings
from opfl_chain.transport.server import HttpServer

CONTRIBUTION, ANSWER = BundleKind.CONTRIBUTION, BundleKind.ANSWER
STATEMENTS = {CONTRIBUTION: Contribution, ANSWER: Answer}
PATHS = {CONTRIBUTION: "contributions", ANSWER: "answers"}
PHASES = Phases(
    enrol=60, deliver=40, roll=40, beacon=30, answer=30, attest=80, finalise=60, response=60
)


class ProvedPlayer(JobPlayer):
    """A player whose jobs are of proved steps."""

    policy = default_policy("lenet-61706", rule="proved", batch_size=8, audit_rate=1.0)
    boundary = reference_boundary(policy)
    layout = model_of(policy).layout
    weights = layout.flatten(initial_parameters(layout, policy.seeds.model))


class TickingMember(Member):
    """A member that acts when the test says so, and serves its peers all the time."""

    def tick(self):
        self.look()
        self.agenda.begin(self._moment.head)
        self.peers.patience.begin()
        self.act(self._moment)
        self.cursor.catch_up()

    def look(self):
        """Know the chain, without acting."""
        step = self.cursor.catch_up()
        head = step.target + self.settings.chain.confirmations
        self._moment = Moment(step.position, head, self.agenda)


class ContributingClient:
    """A client that trains and seals as the daemon does, and sends where the test says."""

    def __init__(self, world, actor, number):
        self.world, self.actor, self.address = world, actor, actor.address
        data = ClientData(ProvedPlayer.policy, load_dataset("synthetic").train, number)
        self.own = Contributor(
            ProvedPlayer.policy,
            ProvedPlayer.boundary,
            data,
            bytes([number + 1]) * 32,
            Conduct(),
            rounds=world.rounds,
            name_contribution=self._name,
        )
        self.made = {}

    def bundle(self, kind, changed=None, seed=None):
        """The bundle for the open round; `changed` alters its content before it is sealed.

        With another `seed` the same content is another bundle.
        """
        round_ = self.world.round
        if round_.opening not in self.made:
            self.made[round_.opening] = self.own.make(
                round_.number, round_.opening, ProvedPlayer.weights, b""
            )
        parts = self.own.parts(kind, round_.number, round_.opening, self.made[round_.opening])
        if changed is not None:
            parts = changed(parts)
        keys = [self.world.member(seat).sealing_key.public for seat in range(3)]
        place = context(
            self.world.player.domain.separator, round_.id, round_.opening, self.address, kind
        )
        if seed is not None:
            return seal(kind, place, parts, keys, seed)
        return self.own.seal(kind, round_.opening, place, parts, keys)

    def sign(self, kind, bundle, opening=None):
        round_ = self.world.round
        statement = STATEMENTS[kind](
            self.world.job,
            round_.number,
            opening or round_.opening,
            self.address,
            bundle.content_hash,
        )
        return sign_statement(self.actor.account, statement, self.world.player.domain)

    def deliver(self, kind=CONTRIBUTION, seats=(0, 1, 2), bundle=None, signature=None):
        """Post a bundle; return the status codes by seat."""
        bundle = bundle or self.bundle(kind)
        signature = signature or self.sign(kind, bundle)
        return [self.post(kind, seat, bundle.encode(), signature) for seat in seats]

    def post(self, kind, seat, body, signature):
        url = self.world.member(seat).http.url
        path = f"{url}/rounds/{self.world.round.id}/{PATHS[kind]}/{self.address}"
        headers = {"Opfl-Signature": tohex(signature)}
        return httpx.post(path, content=body, headers=headers, timeout=60).status_code

    def _name(self, t, opening, gradient, training_input):
        separator, round_ = self.world.player.domain.separator, self.world.round
        del t
        index = self.world.member(0).view.client(self.address).index
        return proof_context(separator, round_.id, opening, index, gradient, training_input)


class World:
    """A job whose members and standby are real daemons in this process.

    Time is virtual: blocks come when the test says so.
    """

    def __init__(
        self,
        player,
        folder,
        *,
        clients=3,
        cheats=None,
        rounds=2,
        confirmations=0,
        time="virtual",
        members=4,
        **terms,
    ):
        self.player, self.folder, self.rounds = player, folder, rounds
        self.chain = {"confirmations": confirmations, "time": time}
        self._open = ExitStack()
        changes = {"max_clients": clients, **terms}
        self.job = player.create_real_job(rounds=rounds, phases=PHASES, **changes)
        self.members = [
            self._started(actor, number, (cheats or {}).get(number, TickingMember))
            for number, actor in enumerate(player.roster[:members])
        ]
        self.tick()
        self.clients = [
            ContributingClient(self, actor, number)
            for number, actor in enumerate(player.clients[:clients])
        ]
        for client in self.clients:
            player.enrol_root(self.job, client.actor, client.own.dataset.root)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._open.close()

    def restart(self, number):
        """Kill a member and start it again with what it had on disk."""
        self.members[number].http.close()
        self.members[number].close()
        self.members[number] = self._started(self.player.roster[number], number, TickingMember)

    def _started(self, actor, number, kind):
        folder = self.folder / f"member-{number}"
        keystore = folder / "bls.json"
        settings = self.player.settings(actor, folder, self.job)
        chain = settings.chain.model_copy(update=self.chain)
        key = self.player.keys[actor.address]
        if not keystore.exists():
            create_bls_key(keystore, PASSWORD, key=key, scrypt_n=SCRYPT_CHEAP)
        more = {"bls_keystore": keystore, "mpc_addresses": [f"127.0.0.1:{n}" for n in range(1, 6)]}
        settings = {**settings.model_dump(), **more, "chain": chain}
        member = kind(MemberSettings.model_validate(settings))
        self._open.callback(member.close)
        member.http = self._open.enter_context(HttpServer("127.0.0.1:0", member.routes()))
        return member

    def member(self, seat):
        return self.members[seat]

    @property
    def round(self):
        return self.members[1].view.latest_round()

    def open(self):
        """Open the next round; enrolment ends first."""
        jobs = self.player.contracts.jobs
        self.player.mine_past(jobs.participants(self.job).enrol_deadline)
        receipt = self.player.send(
            self.player.operator, self.player.contracts.rounds.open_round(self.job)
        )
        self.confirm()
        return RoundOpened.in_receipt(receipt)

    def confirm(self):
        """Have members know what has happened so far."""
        if depth := self.chain["confirmations"]:
            self.player._mine(depth)
        self.catch_up()

    def catch_up(self):
        """Have members know the chain without acting."""
        for member in self.members:
            member.look()

    def tick(self, *members, times=1):
        """Let these members act, by default all."""
        for _ in range(times):
            for number in members or range(len(self.members)):
                self.members[number].tick()

    def until(self, reached, *members, blocks=1, most=400):
        """Let members act, and mine, until something is so."""
        for _ in range(most):
            self.catch_up()
            if reached():
                return
            self.tick(*members)
            self.player._mine(blocks)
        raise AssertionError("it did not come to that")


def flipped(text):
    """The same bytes but for one bit."""
    return bytes([text[0] ^ 1]) + text[1:]


def spoilt(bundle, seat):
    """The bundle with envelopes that do not open for one seat."""
    holders = ((0, 2), (0, 1), (1, 2))
    envelopes = list(bundle.envelopes)
    for component, pair in enumerate(holders):
        for place, holder in enumerate(pair):
            if holder == seat:
                envelopes[2 * component + place] = flipped(envelopes[2 * component + place])
    return replace(bundle, envelopes=tuple(envelopes))
