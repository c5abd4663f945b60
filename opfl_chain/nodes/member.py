"""The committee member: beacon, deliveries, audits, verdicts, sums, and what verdicts cost."""

from __future__ import annotations

from typing import Any, ClassVar

from opfl_chain.chain.bindings.types import Role
from opfl_chain.chain.bindings.types import Verdict as EncodedVerdict
from opfl_chain.chain.keys import load_bls_key
from opfl_chain.mpc.party import Party, PartySession
from opfl_chain.mpc.seat import Seat
from opfl_chain.nodes import claims, member_store, models
from opfl_chain.nodes.audit_desk import AuditDesk
from opfl_chain.nodes.beacon_duty import BeaconDuty
from opfl_chain.nodes.chain_view import RoundView
from opfl_chain.nodes.claims import Claims
from opfl_chain.nodes.enforcement import Enforcement
from opfl_chain.nodes.errors import JobUnusable
from opfl_chain.nodes.judging import Judging
from opfl_chain.nodes.member_endpoints import MemberEndpoints
from opfl_chain.nodes.member_store import MemberStore
from opfl_chain.nodes.models import Models
from opfl_chain.nodes.node import Moment, Node
from opfl_chain.nodes.pushing import Pushing
from opfl_chain.nodes.settings import MemberSettings
from opfl_chain.nodes.sums import MemberSums
from opfl_chain.nodes.turns import place_of
from opfl_chain.protocol.beacon import proof_of_possession_message
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.transport.routes import Route

_DECIDING_GAS = 150_000
"""The attestation that decides writes more than one that does not, whichever comes second."""

_RECENT_ROUNDS = 16


class Member(Node):
    ROLE = "committee"
    SCHEMA: ClassVar[str] = member_store.SCHEMA + models.SCHEMA + claims.SCHEMA

    def __init__(self, settings: MemberSettings) -> None:
        super().__init__(settings)
        self._settings = settings
        if self.address not in self.job.members:
            self.close()
            raise JobUnusable(f"{self.address} is no member of job {self.job.id}")
        self.rank = list(self.job.members).index(self.address)
        password = settings.account.password()
        self._bls_key = load_bls_key(settings.bls_keystore, password)
        self.store = MemberStore(self.state)
        self.models = Models(self.view, self.state)
        self.claims = Claims(self.view, self.state, self.peers)
        self.judging = Judging(self.job, self.rank, self.store, self.claims, self.models)
        self.sums = MemberSums(self.view, self.peers, self.judging, self.store, self.rank)
        self._beacon = BeaconDuty(self, self.rank, self._bls_key, self.store)
        self._enforcement = Enforcement(self, self.rank, self.store, self.claims)
        self._pushing = Pushing(self)
        phase = self.job.terms.phases.attest
        self._alone_margin = max(2, phase // 4)
        self._desk = AuditDesk(Party(self._seat()), settings.mpc_join_seconds, self.wake)
        self._open.callback(self._desk.close)
        self._desk.prepare(self.judging.warm)
        self._left = False

    @property
    def moment(self) -> Moment | None:
        return self._moment

    @property
    def done(self) -> bool:
        return self._left

    def routes(self) -> list[Route]:
        return MemberEndpoints(self).routes()

    def health(self) -> dict[str, Any]:
        return {"rank": self.rank, "audit": self._desk.busy_with}

    # --- what is due

    def act(self, now: Moment) -> None:
        if not self._joined():
            return
        self.models.follow(self.peers.fetch_aggregate)
        round_ = self.view.latest_round()
        if round_ is not None and round_.over is None:
            self.sign_beacon(round_, now)
            self._conclude(round_)
        for recent in self._recent_rounds():
            self.judge(recent, now)
            self._enforcement.act(recent, now)
        for slash in self.view.slashes():
            self._enforcement.act_on_slash(slash, now)
            if self._enforcement.awaits_second_replay(slash):
                self._replay_once_more(slash.round, slash.client)
        place = place_of(self.rank, round_.number if round_ else 0)
        self._pushing.act(now, 1 + place)
        self._forget(now)
        if self.view.is_closed:
            self._leave(now)

    def sign_beacon(self, round_: RoundView, now: Moment) -> None:
        self._beacon.act(round_, now)

    def judge(self, round_: RoundView, now: Moment) -> None:
        """Attest what was found, also when others have decided already, or have it found out."""
        attested = self.address in self.view.attestations(round_.id)
        if attested or not round_.settled(now.seen) or now.head >= round_.schedule.attest:
            return
        verdict = self.store.judgement(round_.number)
        if verdict is None and round_.verdict_hash is None:
            verdict = self._find_out(round_, now)
        if verdict is not None:
            self.attest(round_, verdict)

    def _find_out(self, round_: RoundView, now: Moment) -> Verdict | None:
        """With the peers as long as there is time, and then alone."""
        if now.head >= round_.schedule.attest - self._alone_margin:
            verdict = self.judging.alone(round_)
            self.store.keep_judgement(round_.number, verdict)
            return verdict
        complete = not (self.claims.lacks_batch(round_) or self.judging.missing(round_))
        if complete or now.seen > round_.schedule.deliver:
            self._desk.offer(f"judge {round_.id}", lambda session: self._judge(session, round_))
        return None

    def attest(self, round_: RoundView, verdict: Verdict) -> None:
        encoded = EncodedVerdict(verdict.passes_bytes, verdict.faults_bytes)
        call = self.job.contracts.jobs.attest(round_.id, encoded).with_spare_gas(_DECIDING_GAS)
        self.send(call, f"attest {round_.number}")

    def _judge(self, session: PartySession, round_: RoundView) -> None:
        verdict = self.judging.together(session, round_)
        self.log.info(
            "judged",
            extra={
                "round": round_.number,
                "passed": sorted(verdict.passed),
                "faults": {fault.client: fault.reason.name for fault in verdict.faults},
            },
        )

    def _replay_once_more(self, number: int, client: Address) -> None:
        round_ = self.view.round(number)
        if round_ is None:
            return

        def task(session: PartySession) -> None:
            passed = self.judging.once_more(session, round_, client)
            self.log.info(
                "replayed again", extra={"round": number, "client": client, "passed": passed}
            )

        self._desk.offer(f"once more {round_.id} {client}", task)

    def _conclude(self, round_: RoundView) -> None:
        """Open the sum of what the decided verdict accepts, and sign what it makes of the model."""
        if round_.verdict_hash is None or self.store.result(round_.number) is not None:
            return
        verdict = self.view.decided_verdict(round_)
        aggregate = self.sums.aggregate(round_)
        if verdict is None or aggregate is None:
            return
        hashes = self.models.propose(round_, aggregate, len(verdict.passed))
        self.store.keep_result(round_.number, round_.verdict_hash, *hashes)

    # --- coming and going

    def _joined(self) -> bool:
        """Register the key, stake, and announce where clients reach us, if that is not done."""
        jobs = self.job.contracts.jobs
        if self.view.public_key(self.address) is None:
            self._register_key()
        if not self.view.has_joined(self.address):
            call = jobs.join_committee(self.job.id, value=self.job.terms.member_stake)
            self.send(call, "join")
        url = self._settings.announce or self.http.url
        if self.view.endpoints().get(self.address) != url:
            self.send(jobs.announce_endpoint(self.job.id, url), f"announce {url}")
            return False
        return self.view.has_joined(self.address)

    def _register_key(self) -> None:
        beacon, public = self.job.contracts.beacon, self._bls_key.public_key.eip2537()
        statement = proof_of_possession_message(
            self.job.domain.chain_id, beacon.address, self.address, public
        )
        proof = self._bls_key.prove_possession(statement).eip2537()
        self.send(beacon.register_key(public, proof), "register key")

    def _leave(self, now: Moment) -> None:
        """Once no slash is open that we could still be needed for."""
        if any(map(self._enforcement.awaits_second_replay, self.view.slashes())):
            return
        unbond = self.job.contracts.jobs.unbond_stake(self.job.id)
        self._left = self.take_money(Role.MEMBER, unbond, now)

    def _recent_rounds(self) -> list[RoundView]:
        """Those of which something may still have to be done."""
        latest = self.view.latest_round()
        return self.view.rounds_since(latest.number - _RECENT_ROUNDS) if latest else []

    def _forget(self, now: Moment) -> None:
        """Delete shares that no audit and no slash can ask for any more."""
        pending = {slash.round for slash in self.view.slashes() if self._is_pending(slash.round)}
        for number in self.store.rounds_with_deliveries():
            round_ = self.view.round(number)
            over = round_ is not None and round_.over is not None
            if over and round_ and now.seen > round_.schedule.request and number not in pending:
                self.store.forget_deliveries(number)

    def _is_pending(self, number: int) -> bool:
        return any(
            self._enforcement.awaits_second_replay(slash)
            for slash in self.view.slashes()
            if slash.round == number
        )

    def _seat(self) -> Seat:
        settings = self._settings
        return Seat(
            self.rank,
            tuple(settings.mpc_addresses),
            self.peers.own_tls,
            settings.mpc_listen_host,
            settings.mpc_link_ports,
        )
