"""The committee member: roll, beacon, audits, verdicts, sums, charges and seats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from opfl_chain.chain.bindings.types import Role
from opfl_chain.chain.keys import load_bls_key
from opfl_chain.mpc.session.party import PROGRAM, Party
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.mpc.session.ranks import certificate_name
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.delivery import Expected
from opfl_chain.protocol.echo import Slot
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.randomness import proof_of_possession_message
from opfl_chain.protocol.sealing import derived_key
from opfl_chain.protocol.verdict import Outcome, Verdict
from opfl_chain.roles import model_store as models
from opfl_chain.roles.member import store as member_store
from opfl_chain.roles.member.audits import Judging
from opfl_chain.roles.member.beacon import BeaconDuty
from opfl_chain.roles.member.charges import Charges
from opfl_chain.roles.member.contributions import Contributions
from opfl_chain.roles.member.endpoints import MemberEndpoints
from opfl_chain.roles.member.hearings import Answers, Hearing, HearingPlan, Outcomes
from opfl_chain.roles.member.intake import Intake
from opfl_chain.roles.member.joint_audits import JointAudits
from opfl_chain.roles.member.meetings import MeetingAudits
from opfl_chain.roles.member.messages import Messages
from opfl_chain.roles.member.newcomers import Newcomers
from opfl_chain.roles.member.parts import MemberParts
from opfl_chain.roles.member.proved_audits import ProvedAudits
from opfl_chain.roles.member.referees import Referees
from opfl_chain.roles.member.rolls import RollDuty
from opfl_chain.roles.member.seats import SeatDuty
from opfl_chain.roles.member.steps import Steps
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.member.sums import MemberSums
from opfl_chain.roles.model_store import Models
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.round_driver import RoundDriver, place_of
from opfl_chain.roles.settings import JobUnusable, MemberSettings
from opfl_chain.roles.view.records import RoundView
from opfl_chain.rules.registry import rule_of
from opfl_chain.transport.routes import Route

_DECIDING_GAS = 150_000
"""Spare gas: the deciding attestation writes more, and any of them may turn out to be it."""

_TAKEOVER_SECONDS = 60.0
"""Time for the SPU process of a member that was killed to end, before its successor gives up."""

_AFTERMATH_BLOCKS = 64
"""Blocks after the response window during which a round is still processed without a reason."""


class Member(Node):
    """A member of the roster; it serves in the rounds in which it has a seat."""

    ROLE = "committee"
    # What a member that cheats replaces.
    MESSAGES: ClassVar[type[Messages]] = Messages
    ROLLS: ClassVar[type[RollDuty]] = RollDuty
    PROVED_AUDITS: ClassVar[type[ProvedAudits]] = ProvedAudits
    MEETINGS: ClassVar[type[MeetingAudits]] = MeetingAudits
    MPC_PROGRAM: ClassVar[str] = PROGRAM
    SUMS: ClassVar[type[MemberSums]] = MemberSums
    SCHEMA: ClassVar[str] = member_store.SCHEMA + models.SCHEMA

    def __init__(self, settings: MemberSettings) -> None:
        super().__init__(settings)
        self._settings = settings
        if self.address not in self.job.roster:
            self.close()
            raise JobUnusable(f"{self.address} is neither member nor standby of job {self.job.id}")
        self._bls_key = load_bls_key(settings.bls_keystore, settings.account.password())
        self.sealing_key = derived_key(keccak256(bytes(self.account.key)), b"member")
        self.store = MemberStore(self.state)
        self.models = Models(self.view, self.state)
        self.messages = self.MESSAGES(self, self.store)
        self.steps = Steps(self.store, self.messages, lambda *found: self.charges.convict(*found))
        self.judging = Judging(self.job, self.models)
        gradients = Intake(
            self,
            self.store,
            BundleKind.CONTRIBUTION,
            self._expected,
            lambda round_, client: self.rolls.refusal(round_, client),
        )
        answers = Intake(
            self,
            self.store,
            BundleKind.ANSWER,
            self._expected,
            lambda round_, client: self.answers.refusal(round_, client),
        )
        self.gradient_intake, self.answer_intake = gradients, answers
        intakes = {BundleKind.CONTRIBUTION: gradients, BundleKind.ANSWER: answers}
        self.newcomers = Newcomers(self, self.store, self.sealing_key, intakes)
        self.contributions = Contributions(
            self, self.store, self.messages, gradients, answers, self.sealing_key, self.newcomers
        )
        self.rolls = self.ROLLS(
            self,
            self.store,
            self.messages,
            self.steps,
            gradients,
            self.contributions,
            self.sealing_key,
        )
        self.answers = Answers(
            self,
            self.store,
            self.messages,
            self.steps,
            answers,
            self.contributions,
            self.newcomers,
        )
        self.charges = Charges(self, self.store, self.contributions, self.seat)
        self.parts = MemberParts(
            self,
            self.store,
            self.messages,
            self.steps,
            self.judging,
            gradients,
            answers,
            self.contributions,
            self.answers,
            self.charges,
            self.sealing_key,
        )
        self.referees = Referees(self.parts, lambda round_: self._audits.statement(round_))
        self.sums = self.SUMS(
            self,
            self.store,
            self.messages,
            self.steps,
            self.contributions,
            self._expected,
            self.charges,
            self.referees,
        )
        self._hearings = HearingPlan(self, self.charges.subjects, self.store)
        self._beacon = BeaconDuty(self, self._bls_key, self.store, self.messages)
        self._seats = SeatDuty(self, self.store)
        self._round_driver = RoundDriver(self)
        self._audits = self._joint_audits()
        self._open.callback(self._audits.close)
        self._left = False

    def _joint_audits(self) -> JointAudits:
        """Start what audits need: nothing if steps are proved, else a process for MPC."""
        tolerance = rule_of(self.job.boundary).tolerance(self.job.boundary)
        if tolerance is not None:
            return self.PROVED_AUDITS(self.parts, self.referees, tolerance)
        return self.MEETINGS(self.parts, self._party, self._settings.mpc_join_seconds)

    @property
    def done(self) -> bool:
        return self._left

    def seat(self, round_: RoundView) -> int | None:
        """Our seat in a round, if we have one."""
        seats = list(self.view.seats_of(round_))
        return seats.index(self.address) if self.address in seats else None

    def _expected(self, round_: RoundView) -> Expected:
        return self.judging.expected(self.seat(round_) or 0)

    def routes(self) -> list[Route]:
        own = MemberEndpoints(self, self.store, self.models, self.rolls, self.sums, self.charges)
        expected = self.judging.expected(0)
        return [
            *own.routes(),
            *self.messages.routes(),
            *self.referees.routes(),
            *self._seats.routes(),
            *self.newcomers.routes(),
            *(
                route
                for intake in (self.gradient_intake, self.answer_intake)
                for route in intake.routes(expected)
            ),
            *self._audits.routes(),
        ]

    def audit(self) -> tuple[str | None, str | None]:
        return self._audits.under_way

    def health(self) -> dict[str, Any]:
        round_ = self.view.latest_round()
        return {"seat": self.seat(round_) if round_ else None, **self._audits.health}

    # --- duties

    def act(self, now: Moment) -> None:
        """Perform pending duties: deadlines first, and a failed duty does not stop the rest."""
        if not self._joined(now):
            return
        self._audits.begin(now.head)
        round_ = self.view.latest_round()
        recent = self._recent_rounds(now)
        serving = round_ is not None and round_.over is None and self.seat(round_) is not None
        if round_ is not None and serving:
            self._serve_alone(round_, now)
        with self.duty("models"):
            self.models.follow(self.peers.fetch_aggregate)
        if round_ is not None and serving:
            self._serve(round_, now)
        for each in recent:
            if self.seat(each) is not None:
                if each.over == "finalised" and self.store.result(each.opening) is None:
                    with self.duty(f"sum of round {each.number}"):
                        self.sums.finish(each, now)
                with self.duty(f"charges of round {each.number}"):
                    self.charges.act(each, now)
            with self.duty(f"hearing on round {each.number}"):
                self._hear_later(each, now)
        with self.duty("seats"):
            self._seats.act(now)
        with self.duty("moving on"):
            seat = self.seat(round_) if round_ else list(self.job.roster).index(self.address)
            place = place_of(seat or 0, round_.number if round_ else 0)
            self._round_driver.act(now, 1 + place)
        self._audits.end()
        self._forget(now)
        if self.view.is_closed or self.is_stillborn(now):
            with self.duty("leaving"):
                self._leave(now)

    def _serve_alone(self, round_: RoundView, now: Moment) -> None:
        """Do what takes the chain alone, so that no peer can make us miss a deadline."""
        with self.duty("beacon"):
            self.sign_beacon(round_, now)
        with self.duty("stored verdict"):
            passes = self.store.verdict(round_.opening)
            if passes is not None and self._may_attest(round_, now):
                self.attest(round_, passes)

    def _serve(self, round_: RoundView, now: Moment) -> None:
        """Do what our seat has to do in the round that is open."""
        with self.duty("roll"):
            self.rolls.act(round_, now)
        with self.duty("seed"):
            self._beacon.combine(round_, now)
        with self.duty("verdict"):
            self.judge(round_, now)
        with self.duty("result"):
            self._conclude(round_, now)

    def sign_beacon(self, round_: RoundView, now: Moment) -> None:
        self._beacon.act(round_, now)

    # --- verdict

    def judge(self, round_: RoundView, now: Moment) -> None:
        """Take the next steps towards our verdict, and attest it once it is found."""
        if not self._may_attest(round_, now) or self.store.verdict(round_.opening) is not None:
            return
        passes = self._find_verdict(round_, now)
        if passes is not None:
            self.attest(round_, passes)

    def _may_attest(self, round_: RoundView, now: Moment) -> bool:
        attested = self.address in self.view.attestations(round_.id)
        if round_.roll is None or attested or now.has_come(round_.schedule.attest):
            return False
        return now.knows_audited(round_)

    def _find_verdict(self, round_: RoundView, now: Moment) -> bytes | None:
        if self.contributions.roll(round_) is None:
            self.agenda.again()  # peers that agreed on it have it
            return None
        claims = self.contributions.claims(round_)
        audited = tuple(client for client, claim in claims.items() if claim.audited)
        ready = self.answers.all_here(round_, audited) or now.has_come(round_.schedule.answer)
        if not ready and self.messages.own(round_, Slot.ANSWERS) is None:
            return None
        hearing = Hearing(round_, 0, audited, round_.schedule.answer, round_.schedule.attest - 1)
        found = self._audits.hear(hearing, now)
        if found is None:
            return None
        self._keep(hearing, found)
        passed = {claims[client].client for client, end in found.items() if end is Outcome.PASSED}
        passes = Verdict.of(passed).passes_bytes
        self.store.keep_verdict(round_.opening, passes)
        self.log.info(
            "judged",
            extra={
                "round": round_.number,
                "passed": sorted(passed),
                "failed": [c for c, end in found.items() if end is Outcome.OUTSIDE],
                "undecided": [c for c, end in found.items() if end in (None, Outcome.UNANSWERED)],
            },
        )
        return passes

    def attest(self, round_: RoundView, passes: bytes) -> None:
        call = self.job.contracts.rounds.attest(round_.id, round_.opening, passes)
        call = call.with_spare_gas(_DECIDING_GAS)
        self.send(call, f"attest {round_.number} {round_.opening.hex()[:16]}")

    def _keep(self, hearing: Hearing, found: Outcomes) -> None:
        """Store outcomes that no later hearing can change, for us to sign.

        Who passed before the verdict is in it. That a client has not answered is known only after
        the response window, and only to a member that has no valid answer itself: an answer that
        members could not agree on is heard again, unless its client signed two. A replay is
        repeated before it costs anything.
        """
        opening, response = hearing.round.opening, hearing.round.schedule.response
        ended: dict[Address, Outcome] = {}
        for client, outcome in found.items():
            if client not in hearing.clients or outcome is None:
                continue
            final = hearing.attempt > 0
            if outcome is Outcome.UNANSWERED:
                in_time = self.answers.all_here(hearing.round, (client,))
                in_time = in_time and not self.answers.has_signed_two(hearing.round, client)
                final = final and hearing.start > response and not in_time
            elif outcome is Outcome.OUTSIDE:
                times = self.store.keep_found_outside(opening, client, hearing.attempt)
                final = times >= self._audits.hearings_needed
            if final:
                ended[client] = outcome
        self.store.keep_heard(opening, hearing.attempt, ended)

    def _hear_later(self, round_: RoundView, now: Moment) -> None:
        """Decide what the verdict left open, and who has not answered in time."""
        hearing = self._hearings.later(round_, now)
        if hearing is None:
            self.newcomers.hand_over_seat(round_, self.charges.subjects(round_))
            return
        for entry in self.store.roll(round_.opening):
            if entry.address in hearing.clients:
                self.newcomers.hand_over(
                    hearing.round, BundleKind.CONTRIBUTION, entry.address, entry.content_hash
                )
        found = self._audits.hear(hearing, now)
        if found is not None:
            self._keep(hearing, found)

    # --- result

    def _conclude(self, round_: RoundView, now: Moment) -> None:
        """Open the sum of the accepted contributions, and store the result for us to sign."""
        if round_.verdict_hash is None or self.store.result(round_.opening) is not None:
            return
        passes = self.view.decided_passes(round_)
        aggregate = self.sums.open(round_, now)
        if passes is None or aggregate is None:
            return
        hashes = self.models.propose(round_, aggregate, len(Verdict.decode(passes).passed))
        self.store.keep_result(round_.opening, round_.verdict_hash, *hashes)

    # --- joining and leaving

    def _joined(self, now: Moment) -> bool:
        """Register the key, stake and announce our URL, if not done; return whether we joined."""
        jobs = self.job.contracts.jobs
        self._register_key()
        joined = self.view.joined(self.address)
        if not joined and not now.has_come(self.job.enrolment_end):
            call = jobs.join_committee(
                self.job.id, self.sealing_key.public, value=self.job.terms.member_stake
            )
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
        """Claim our pay and withdraw, once every audit is decided."""
        if self.view.undecided() or any(
            self.charges.subjects(each) for each in self._recent_rounds(now)
        ):
            return
        self._claim()
        unbond = self.job.contracts.jobs.unbond_stake(self.job.id)
        self._left = self.take_money(Role.MEMBER, unbond, now)

    def _claim(self) -> None:
        """Claim what we earned by attesting what was decided."""
        claimed = self.view.claims(self.address)
        earned = [
            round_.id
            for round_ in self.view.rounds()
            if round_.verdict_hash is not None
            and self.view.attestations(round_.id).get(self.address) == round_.verdict_hash
            and round_.number not in claimed
        ]
        if earned and self.job.terms.pay.member:
            call = self.job.contracts.rewards.claim_service(self.address, tuple(earned))
            self.send(call, f"claim {earned[0]} to {earned[-1]}")

    def _recent_rounds(self, now: Moment) -> list[RoundView]:
        """Rounds that may still have pending duties: all that are recent or have open audits."""
        phases = self.job.terms.phases
        lifetime = (
            phases.deliver + phases.roll + phases.beacon + phases.answer + phases.attest
            + phases.response + _AFTERMATH_BLOCKS
        )  # fmt: skip
        recent = {each.number: each for each in self.view.rounds_opened_since(now.head - lifetime)}
        for charge in self.view.undecided():
            if (round_ := self.view.round(charge.round)) is not None:
                recent[round_.number] = round_
        return [recent[number] for number in sorted(recent)]

    def _forget(self, now: Moment) -> None:
        """Delete bundles and messages of rounds that nobody can ask about any more."""
        needed = {each.opening for each in self._recent_rounds(now)}
        latest = self.view.latest_round()
        for opening in self.store.openings():
            if opening not in needed and (latest is None or opening != latest.opening):
                self.store.forget(opening)

    def _party(self, seats: Sequence[Address]) -> Party:
        """Start our process for MPC among the accounts that have these seats."""
        settings, roster = self._settings, list(self.job.roster)
        config = PartyConfig(
            list(seats).index(self.address),
            tuple(settings.mpc_addresses[roster.index(member)] for member in seats),
            self.peers.own_tls,
            settings.mpc_listen_host,
            settings.mpc_link_ports,
            tuple(certificate_name(roster.index(member)) for member in seats),
        )
        return Party(config, takeover_seconds=_TAKEOVER_SECONDS, program=self.MPC_PROGRAM)
