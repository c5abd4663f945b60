"""The committee member: beacon, deliveries, audits, verdicts, sums, and what verdicts cost."""

from __future__ import annotations

import contextlib
from typing import Any, ClassVar

from opfl_chain.chain.bindings.types import Reason, Role
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
from opfl_chain.nodes.patience import Patience
from opfl_chain.nodes.pushing import Pushing
from opfl_chain.nodes.settings import MemberSettings
from opfl_chain.nodes.sums import MemberSums
from opfl_chain.nodes.turns import place_of
from opfl_chain.protocol.beacon import proof_of_possession_message
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import RoundNumber
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.routes import Route

_DECIDING_GAS = 150_000
"""The attestation that decides writes more than one that does not, whichever comes second."""

_AFTERMATH_BLOCKS = 64
"""How long after the last request for a slash a round is still looked at."""


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
        self._alone_margin = min(phase - 1, max(2, phase // 4))
        self._helping = Patience(first=1.0, last=4.0)
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
        return {"rank": self.rank, "audit": self._desk.busy_with, **self._desk.cost}

    # --- what is due

    def act(self, now: Moment) -> None:
        """What has a deadline comes first, and nothing keeps us from what comes next."""
        if not self._joined(now):
            return
        round_ = self.view.latest_round()
        recent = self._recent_rounds(now)
        if round_ is not None and round_.over is None:
            with self.duty("beacon"):
                self.sign_beacon(round_, now)
            if round_.closed(now.seen):
                self.claims.fetch(round_)
        for each in reversed(recent):
            with self.duty(f"verdict of round {each.number}"):
                self.judge(each, now)
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
            self._pushing.act(now, 1 + place)
        for each in reversed(recent):
            self._help(each, now)
        self._forget(now)
        if self.view.is_closed or self.view.is_stillborn(now.seen):
            with self.duty("leaving"):
                self._leave(now)

    def sign_beacon(self, round_: RoundView, now: Moment) -> None:
        self._beacon.act(round_, now)

    def judge(self, round_: RoundView, now: Moment) -> None:
        """Attest what was found, also when others have decided already, or have it found out."""
        attested = self.address in self.view.attestations(round_.id)
        if attested or not round_.settled(now.seen) or now.head >= round_.schedule.attest:
            return
        verdict = self.store.judgement(round_.number) or self._find_out(round_, now)
        if verdict is not None:
            self.attest(round_, verdict)

    def _find_out(self, round_: RoundView, now: Moment) -> Verdict | None:
        """With the peers as long as there is time, and then alone."""
        if now.head >= round_.schedule.attest - self._alone_margin:
            verdict = self.judging.alone(round_)
            if round_.verdict_hash is None:
                self.store.keep_judgement(round_.number, verdict)
                return self.store.judgement(round_.number)
            # Others found out more than can be found out alone: do not contradict them.
            return verdict if verdict.hash == round_.verdict_hash else None
        complete = not (self.claims.lacks_batch(round_) or self.judging.missing(round_))
        if complete or now.seen > round_.schedule.deliver:
            self._desk.offer(_judging(round_), lambda session: self._judge(session, round_))
        return None

    def _help(self, round_: RoundView, now: Moment) -> None:
        """Judge a round again with a peer that asks for it: it lost what was found, and would pay.

        What we found and attested stays.
        """
        name, attested = _judging(round_), self.view.attestations(round_.id)
        late = now.head >= round_.schedule.attest - self._alone_margin
        silent = [m for _, m in self.peers.others(self.address) if m not in attested]
        idle = self._desk.busy_with is None and self._helping.is_due(name)
        if late or self.address not in attested or not silent or not idle:
            return
        self._helping.failed(name)
        for member in silent:
            with contextlib.suppress(TransportError):
                if self.peers.ask_member_json(member, "/health").get("audit") == name:
                    self._desk.offer(name, lambda session: self._judge(session, round_))

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

    def _settle_slashes(self, now: Moment) -> None:
        waiting: set[RoundNumber] = set()
        for slash in self.view.pending_slashes():
            with self.duty(f"slash of {slash.client} in round {slash.round}"):
                self._enforcement.act_on_slash(slash, now)
            if self._enforcement.awaits_second_replay(slash, now):
                waiting.add(slash.round)
        for number in sorted(waiting):
            round_ = self.view.round(number)
            if round_ is not None and self._enforcement.has_requested_all(round_, now):
                self._replay_once_more(round_)

    def _replay_once_more(self, round_: RoundView) -> None:
        """All that failed in a round at once: one after the other might not be done in time."""
        failed = sorted(
            slash.client
            for slash in self.view.pending_slashes()
            if slash.round == round_.number and slash.reason is Reason.REPLAY_OUTSIDE
        )

        def task(session: PartySession) -> None:
            passed = self.judging.once_more(session, round_, failed)
            self.log.info(
                "replayed again",
                extra={"round": round_.number, "clients": failed, "passed": sorted(passed)},
            )

        subject = keccak256("".join(failed).encode()).hex()[:16]
        self._desk.offer(f"once more {round_.id} {subject}", task)

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

    def _joined(self, now: Moment) -> bool:
        """Register the key, stake, and announce where clients reach us, if that is not done."""
        jobs = self.job.contracts.jobs
        self._register_key()
        joined = self.view.has_joined(self.address)
        if not joined and now.head < self.job.enrolment_end:
            call = jobs.join_committee(self.job.id, value=self.job.terms.member_stake)
            self.send(call, "join")
        elif not joined and now.seen >= self.job.enrolment_end:
            self.log.warning("the enrolment ended without us, so there is nothing to do")
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
                    f"{self.address} is registered with another BLS key than that of"
                    f" {self._settings.bls_keystore}: beacons signed with it would not count"
                )
            return
        statement = proof_of_possession_message(
            self.job.domain.chain_id, beacon.address, self.address, public
        )
        proof = self._bls_key.prove_possession(statement).eip2537()
        self.send(beacon.register_key(public, proof), "register key")

    def _leave(self, now: Moment) -> None:
        """Once no slash is open that we could still be needed for."""
        pending = self.view.pending_slashes()
        if any(self._enforcement.awaits_second_replay(slash, now) for slash in pending):
            return
        unbond = self.job.contracts.jobs.unbond_stake(self.job.id)
        self._left = self.take_money(Role.MEMBER, unbond, now)

    def _recent_rounds(self, now: Moment) -> list[RoundView]:
        """Those of which something may still have to be done."""
        phases = self.job.terms.phases
        lifetime = phases.beacon + phases.deliver + phases.attest + phases.request
        return self.view.rounds_closing_since(now.head - lifetime - _AFTERMATH_BLOCKS)

    def _forget(self, now: Moment) -> None:
        """Delete shares that no audit and no slash can ask for any more."""
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

    def _seat(self) -> Seat:
        settings = self._settings
        return Seat(
            self.rank,
            tuple(settings.mpc_addresses),
            self.peers.own_tls,
            settings.mpc_listen_host,
            settings.mpc_link_ports,
        )


def _judging(round_: RoundView) -> str:
    """How members call the judging of a round when they meet for it."""
    return f"judge {round_.id}"
