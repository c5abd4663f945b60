"""The committee member: beacon, deliveries, audits, verdicts, sums and enforcement."""

from __future__ import annotations

from typing import Any, ClassVar

from opfl_chain.chain.bindings.types import Reason, Role
from opfl_chain.chain.bindings.types import Verdict as EncodedVerdict
from opfl_chain.chain.keys import load_bls_key
from opfl_chain.mpc.session.party import Party
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.protocol.identifiers import RoundNumber
from opfl_chain.protocol.randomness import proof_of_possession_message
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.roles import claims
from opfl_chain.roles import model_store as models
from opfl_chain.roles.claims import Claims
from opfl_chain.roles.member import store as member_store
from opfl_chain.roles.member.audits import Judging
from opfl_chain.roles.member.beacon import BeaconDuty
from opfl_chain.roles.member.endpoints import MemberEndpoints
from opfl_chain.roles.member.enforcement import Enforcement
from opfl_chain.roles.member.joint_audits import JointAudits
from opfl_chain.roles.member.meetings import MeetingAudits
from opfl_chain.roles.member.proved_audits import ProvedAudits
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.member.sums import MemberSums
from opfl_chain.roles.model_store import Models
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.round_driver import RoundDriver, place_of
from opfl_chain.roles.settings import JobUnusable, MemberSettings
from opfl_chain.roles.view.view import RoundView
from opfl_chain.rules.registry import rule_of
from opfl_chain.transport.routes import Route

_DECIDING_GAS = 150_000
"""Spare gas: the deciding attestation writes more, and any of them may turn out to be it."""

_TAKEOVER_SECONDS = 60.0
"""Time for the SPU process of a member that was killed to end, before its successor gives up."""

_AFTERMATH_BLOCKS = 64
"""Blocks after the last slash request during which a round is still processed."""


class Member(Node):
    ROLE = "committee"
    PROVED_AUDITS: ClassVar[type[ProvedAudits]] = ProvedAudits
    """How it audits proved steps: what a member that cheats replaces."""
    SCHEMA: ClassVar[str] = member_store.SCHEMA + models.SCHEMA + claims.SCHEMA

    def __init__(self, settings: MemberSettings) -> None:
        super().__init__(settings)
        self._settings = settings
        if self.address not in self.job.members:
            self.close()
            raise JobUnusable(f"{self.address} is not a member of job {self.job.id}")
        self.rank = list(self.job.members).index(self.address)
        password = settings.account.password()
        self._bls_key = load_bls_key(settings.bls_keystore, password)
        self.store = MemberStore(self.state)
        self.models = Models(self.view, self.state)
        self.claims = Claims(self.view, self.state, self.peers, self.backoff())
        self.judging = Judging(self.job, self.rank, self.store, self.claims, self.models)
        self.sums = MemberSums(self.view, self.peers, self.judging, self.store, self.rank)
        self._beacon = BeaconDuty(self, self.rank, self._bls_key, self.store)
        self._enforcement = Enforcement(self, self.rank, self.store, self.claims)
        self._round_driver = RoundDriver(self)
        phase = self.job.terms.phases.attest
        self._alone_margin = min(phase - 1, max(2, phase // 4))
        self._audits = self._joint_audits()
        self._open.callback(self._audits.close)
        self._left = False

    def _joint_audits(self) -> JointAudits:
        """Start what audits need: nothing if steps are proved, else a process for MPC."""
        job, settings = self.job, self._settings
        tolerance = rule_of(job.boundary).tolerance(job.boundary)
        if tolerance is not None:
            return self.PROVED_AUDITS(
                self, self.rank, self.store, self.claims, self.judging, tolerance
            )
        party = Party(self._party_config(), takeover_seconds=_TAKEOVER_SECONDS)
        return MeetingAudits(self, self.judging, party, settings.mpc_join_seconds)

    @property
    def done(self) -> bool:
        return self._left

    def routes(self) -> list[Route]:
        expected = self.judging.expected
        own = MemberEndpoints(self, self.store, self.claims, self.models, expected, self.sums)
        return [*own.routes(), *self._audits.routes()]

    def audit(self) -> tuple[str | None, str | None]:
        return self._audits.under_way

    def health(self) -> dict[str, Any]:
        return {"rank": self.rank, **self._audits.health}

    # --- duties

    def act(self, now: Moment) -> None:
        """Perform pending duties: deadlines first, and a failed duty does not stop the rest."""
        if not self._joined(now):
            return
        self._audits.begin(now.head)
        round_ = self.view.latest_round()
        recent = self._recent_rounds(now)
        if round_ is not None and round_.over is None:
            with self.duty("beacon"):
                self.sign_beacon(round_, now)
            if now.has_seen(round_.schedule.commit):
                self.claims.fetch(round_)
        for each in reversed(recent):
            with self.duty(f"verdict of round {each.number}"):
                self.judge(each, now)
        for each in reversed(recent):
            self._help(each, now)
        with self.duty("models"):
            self.models.follow(self.peers.fetch_aggregate)
        if round_ is not None and round_.over is None:
            with self.duty("result"):
                self._conclude(round_)
        for each in recent:
            with self.duty(f"faults of round {each.number}"):
                self._enforcement.act(each, now)
        self._settle_slashes(now)
        with self.duty("moving on"):
            place = place_of(self.rank, round_.number if round_ else 0)
            self._round_driver.act(now, 1 + place)
        self._audits.end()
        self._forget(now)
        if self.view.is_closed or self.is_stillborn(now):
            with self.duty("leaving"):
                self._leave(now)

    def sign_beacon(self, round_: RoundView, now: Moment) -> None:
        self._beacon.act(round_, now)

    def judge(self, round_: RoundView, now: Moment) -> None:
        """Attest our verdict, also when others have decided already, or start to find it."""
        attested = self.address in self.view.attestations(round_.id)
        if attested or not now.knows_audited(round_) or now.has_come(round_.schedule.attest):
            return
        verdict = self.store.judgement(round_.number) or self._find_out(round_, now)
        if verdict is not None:
            self.attest(round_, verdict)

    def _find_out(self, round_: RoundView, now: Moment) -> Verdict | None:
        """Judge with the peers while there is time, then alone."""
        if now.has_come(round_.schedule.attest - self._alone_margin):
            verdict = self.judging.alone(round_)
            if round_.verdict_hash is None:
                self.store.keep_judgement(round_.number, verdict)
                return self.store.judgement(round_.number)
            # The others may know more than we can find out alone: do not contradict them.
            return verdict if verdict.hash == round_.verdict_hash else None
        complete = not (self.claims.lacks_batch(round_) or self.judging.missing(round_))
        if complete or now.has_seen(round_.schedule.deliver + 1):
            self._audits.judge(round_)
        return self.store.judgement(round_.number)

    def _help(self, round_: RoundView, now: Moment) -> None:
        """Judge a round again with a peer that lost its verdict, and would pay."""
        attested = self.view.attestations(round_.id)
        silent = [m for _, m in self.peers.others(self.address) if m not in attested]
        if self.address not in attested or not silent:
            return
        if not now.has_come(round_.schedule.attest - self._alone_margin):
            self._audits.help(round_, silent)

    def attest(self, round_: RoundView, verdict: Verdict) -> None:
        encoded = EncodedVerdict(verdict.passes_bytes, verdict.faults_bytes)
        call = self.job.contracts.jobs.attest(round_.id, encoded).with_spare_gas(_DECIDING_GAS)
        self.send(call, f"attest {round_.number}")

    def _settle_slashes(self, now: Moment) -> None:
        waiting: set[RoundNumber] = set()
        with self.duty("slashes"):
            self._enforcement.execute(self.view.pending_slashes(), now)
        for slash in self.view.pending_slashes():
            with self.duty(f"slash of {slash.client} in round {slash.round}"):
                self._enforcement.act_on_slash(slash, now)
            if self._enforcement.awaits_second_replay(slash, now):
                waiting.add(slash.round)
        for number in sorted(waiting):
            round_ = self.view.round(number)
            if round_ is not None and self._enforcement.has_requested_all(round_, now):
                self._judge_again(round_)

    def _judge_again(self, round_: RoundView) -> None:
        failed = sorted(
            slash.client
            for slash in self.view.pending_slashes()
            if slash.round == round_.number and slash.reason is Reason.REPLAY_OUTSIDE
        )
        self._audits.judge_again(round_, failed)

    def _conclude(self, round_: RoundView) -> None:
        """Open the sum of the accepted contributions, and store the result for us to sign."""
        if round_.verdict_hash is None or self.store.result(round_.number) is not None:
            return
        verdict = self.view.decided_verdict(round_)
        aggregate = self.sums.open(round_)
        if aggregate is None:
            self.agenda.again()
        if verdict is None or aggregate is None:
            return
        hashes = self.models.propose(round_, aggregate, len(verdict.passed))
        self.store.keep_result(round_.number, round_.verdict_hash, *hashes)

    # --- joining and leaving

    def _joined(self, now: Moment) -> bool:
        """Register the key, stake and announce our URL, if not done; return whether we joined."""
        jobs = self.job.contracts.jobs
        self._register_key()
        joined = self.view.has_joined(self.address)
        if not joined and not now.has_come(self.job.enrolment_end):
            call = jobs.join_committee(self.job.id, value=self.job.terms.member_stake)
            self.send(call, "join")
        elif not joined and now.has_seen(self.job.enrolment_end):
            self.log.warning("the enrolment ended before we joined: nothing to do")
            self._left = True
        url = self._settings.announce or self.http.url
        if self.view.endpoints().get(self.address) != url and not self._left:
            count = self.view.announcements(self.address)
            with self.duty("announcement"):
                self.send(jobs.announce_endpoint(self.job.id, url), f"announce {count} {url}")
        return joined

    def _register_key(self) -> None:
        beacon, public = self.job.contracts.beacon, self._bls_key.public_key.eip2537()
        if (registered := self.view.public_key(self.address)) is not None:
            if registered != public:
                raise JobUnusable(
                    f"{self.address} is registered with another BLS key than that in"
                    f" {self._settings.bls_keystore}: beacons signed with it would not count"
                )
            return
        statement = proof_of_possession_message(
            self.job.domain.chain_id, beacon.address, self.address, public
        )
        proof = self._bls_key.prove_possession(statement).eip2537()
        self.send(beacon.register_key(public, proof), "register key")

    def _leave(self, now: Moment) -> None:
        """Withdraw, once no pending slash can still need us."""
        pending = self.view.pending_slashes()
        if any(self._enforcement.awaits_second_replay(slash, now) for slash in pending):
            return
        unbond = self.job.contracts.jobs.unbond_stake(self.job.id)
        self._left = self.take_money(Role.MEMBER, unbond, now)

    def _recent_rounds(self, now: Moment) -> list[RoundView]:
        """Rounds that may still have pending duties."""
        phases = self.job.terms.phases
        lifetime = phases.beacon + phases.deliver + phases.attest + phases.request
        return self.view.rounds_closing_since(now.head - lifetime - _AFTERMATH_BLOCKS)

    def _forget(self, now: Moment) -> None:
        """Delete shares that no audit and no slash can need any more."""
        pending = {
            slash.round
            for slash in self.view.pending_slashes()
            if self._enforcement.awaits_second_replay(slash, now)
        }
        for number in self.store.rounds_with_deliveries():
            round_ = self.view.round(number)
            over = round_ is not None and round_.over is not None
            if over and round_ and now.seen > round_.schedule.request and number not in pending:
                self.store.forget_deliveries(number)

    def _party_config(self) -> PartyConfig:
        settings = self._settings
        return PartyConfig(
            self.rank,
            tuple(settings.mpc_addresses),
            self.peers.own_tls,
            settings.mpc_listen_host,
            settings.mpc_link_ports,
        )
