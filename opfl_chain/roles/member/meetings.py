"""Joint audits inside MPC: the three members meet in a session for every hearing.

Who is away keeps the others from replaying anything. They say so to each other, the one who is away
pays, and what could not be replayed is heard again later. If nobody was away nobody pays, and a
suspect leaves its seat. A contribution that is found outside is replayed once more, with fresh
randomness, before anyone signs that it is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from opfl_chain.chain.bindings.types import MemberFault
from opfl_chain.mpc.audit.judge import judge
from opfl_chain.mpc.audit.resharing import Given
from opfl_chain.mpc.session.party import Party, PartySession
from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.delivery import Claim, Delivery
from opfl_chain.protocol.echo import Common, Slot, readable
from opfl_chain.protocol.errors import DoesNotOpen
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.protocol.meeting import Results, agreed_results
from opfl_chain.protocol.roll import Complaints
from opfl_chain.protocol.sealing import Complaint
from opfl_chain.protocol.unsealing import complain, complaint_stands, open_answer
from opfl_chain.protocol.verdict import Outcome
from opfl_chain.roles.member.hearings import Hearing, Outcomes
from opfl_chain.roles.member.joint_audits import JointAudits
from opfl_chain.roles.member.parts import MemberParts
from opfl_chain.roles.member.sessions import SessionRunner
from opfl_chain.roles.node import Moment
from opfl_chain.roles.view.records import RoundView

_MEETING_END: Final = 11
"""The part of a hearing at whose end a meeting must be over."""

_LOGGER = logging.getLogger("opfl.committee")


PartyOf = Callable[[Sequence[Address]], Party]
"""Starts our process for MPC among the accounts on some seats."""


class MeetingAudits(JointAudits):
    """Audits of one member, which run one at a time in the background."""

    hearings_needed = 2

    def __init__(self, parts: MemberParts, party: PartyOf, join_seconds: float) -> None:
        self._parts = parts
        self._party = party
        self._join_seconds = join_seconds
        self._seats: tuple[Address, ...] = ()
        self._sessions: SessionRunner | None = None
        if parts.node.address in parts.node.view.seats():
            self._runner(parts.node.view.seats())

    @property
    def under_way(self) -> tuple[str | None, str | None]:
        return (self._sessions.session, self._sessions.meeting) if self._sessions else (None, None)

    @property
    def health(self) -> dict[str, Any]:
        if self._sessions is None:
            return {"audit": None}
        return {"audit": self._sessions.busy_with, **self._sessions.cost}

    def begin(self, head: int) -> None:
        if self._sessions is not None:
            self._sessions.begin(head)

    def end(self) -> None:
        if self._sessions is not None:
            self._sessions.leave_what_is_not_wanted()

    def close(self) -> None:
        if self._sessions is not None:
            self._sessions.close()

    def _runner(self, seats: tuple[Address, ...]) -> SessionRunner:
        """Sessions among the accounts on these seats; when they change, others end."""
        if self._sessions is None or self._seats != seats:
            self.close()
            parts = self._parts
            self._sessions = SessionRunner(
                self._party(seats), self._join_seconds, parts.node.progress.count, parts.node.wake
            )
            self._sessions.prepare(parts.judging.warm)
            self._sessions.begin(parts.node.agenda.head)
            self._seats = seats
        return self._sessions

    def hear(self, hearing: Hearing, now: Moment) -> Outcomes | None:
        answers = self._parts.answers.agree(hearing, now)
        if answers is None:
            return None
        valid = self._valid(hearing, answers, now)
        if valid is None:
            return None
        claims = self._claims(hearing, valid)
        results = self._results(hearing, claims, valid, now)
        if results is None:
            return None
        ends: dict[Address, Outcome | None] = {}
        for client, claim in self._concerned(hearing).items():
            if client in claims:
                ends[client] = results.get(claim.client)
            elif claim.audited:
                ends[client] = Outcome.UNANSWERED
            else:
                ends[client] = Outcome.PASSED
        return ends

    def _concerned(self, hearing: Hearing) -> dict[Address, Claim]:
        """The contributions that a hearing is about."""
        claims = self._parts.contributions.claims(hearing.round)
        if hearing.attempt == 0:
            return claims
        return {client: claims[client] for client in hearing.clients if client in claims}

    def _claims(self, hearing: Hearing, answers: Mapping[Address, bytes]) -> dict[Address, Claim]:
        """The contributions that go into MPC.

        In the scheme `shares`, a contribution on the roll has opened its commitment already.
        """
        opened = self._parts.node.job.policy.commitment_scheme is Scheme.SHARES
        return {
            client: claim
            for client, claim in self._concerned(hearing).items()
            if (client in answers if claim.audited else not opened)
        }

    # --- answers that do not open

    def _valid(
        self, hearing: Hearing, answers: dict[Address, bytes], now: Moment
    ) -> dict[Address, bytes] | None:
        """Drop answers of which a member has shown that its part does not open."""
        parts, round_, sealed = self._parts, hearing.round, self._sealed(hearing)
        said = parts.steps.take(
            round_,
            hearing.slot(Slot.REPORT),
            hearing.ends(2),
            now,
            lambda: self._complaints(sealed, answers).encode(),
        )
        if said is None:
            return None
        clients, most = parts.node.view.clients(), len(answers)
        indices = {clients[client].index: client for client in answers}
        given = self._given(hearing)
        values = {rank: said.values[seat] for seat, rank in enumerate(given) if rank is not None}
        invalid = set()
        for rank, filed in readable(
            values, lambda rank, body: Complaints.decode(body, rank, most)
        ).items():
            key = parts.contributions.sealed_to(sealed, rank)
            for index, (content_hash, complaint) in filed.filed.items():
                client = indices.get(index)
                if client is None or answers[client] != content_hash:
                    continue
                bundle = parts.answer_intake.bundle(round_, client, content_hash)
                context = parts.answer_intake.context(round_, client)
                expected = parts.answer_intake.expected(round_)
                if bundle and complaint_stands(bundle, key, complaint, context, expected):
                    invalid.add(client)
        for client in invalid:
            parts.store.keep_invalid_answer(round_.opening, client, answers[client])
        return {client: each for client, each in answers.items() if client not in invalid}

    def _sealed(self, hearing: Hearing) -> RoundView:
        """The round with the seats that its bundles are sealed to."""
        return self._parts.node.view.round(hearing.round.number) or hearing.round

    def _given(self, hearing: Hearing) -> tuple[int | None, ...]:
        """The seat that each member of a hearing had when the round opened, by its seat now."""
        before = self._parts.messages.seats(self._sealed(hearing))
        seats = self._parts.messages.seats(hearing.round)
        return tuple(before.index(each) if each in before else None for each in seats)

    def _complaints(self, round_: RoundView, answers: Mapping[Address, bytes]) -> Complaints:
        """Complaints of a member that bundles of the round are sealed to."""
        parts = self._parts
        filed: dict[ClientIndex, tuple[bytes, Complaint]] = {}
        if parts.node.address not in parts.messages.seats(round_):
            return Complaints(filed)
        seat, clients = parts.messages.seat(round_), parts.node.view.clients()
        for client, content_hash in answers.items():
            bundle = parts.answer_intake.bundle(round_, client, content_hash)
            context = parts.answer_intake.context(round_, client)
            if bundle is None:
                continue
            try:
                expected = parts.answer_intake.expected(round_)
                open_answer(bundle, seat, parts.sealing_key, context, expected)
            except DoesNotOpen:
                complaint = complain(bundle, seat, parts.sealing_key, context)
                filed[clients[client].index] = content_hash, complaint
        return Complaints(filed)

    # --- the meeting

    def _results(
        self,
        hearing: Hearing,
        claims: Mapping[Address, Claim],
        answers: Mapping[Address, bytes],
        now: Moment,
    ) -> dict[int, Outcome | None] | None:
        """Return the outcomes of the meeting that two members state, by client index."""
        parts, round_, slot = self._parts, hearing.round, hearing.slot(Slot.REVEAL)
        if not claims:
            return {}
        undecided: dict[int, Outcome | None] = {each.client: None for each in claims.values()}
        if not Given(self._given(hearing)).is_enough:
            _LOGGER.warning("those who meet do not hold all components", extra={"round": round_.id})
            return undecided
        own = parts.store.sheet(round_.opening, slot)
        if own is None and parts.messages.own(round_, slot) is None:
            if not now.has_come(hearing.part(_MEETING_END)):
                name = f"hear {round_.id} {round_.opening.hex()[:16]} {hearing.attempt}"
                self._meet(name, hearing, claims, answers)
                return None
            own = Results.ABORTED
        said = parts.steps.take(
            round_, slot, hearing.ends(_MEETING_END + 1), now, lambda: own or Results.ABORTED
        )
        if said is None:
            return None
        agreed = agreed_results(said.values)
        if agreed is None:
            self._blame(round_, said)
            return undecided
        return {
            claim.client: Outcome.PASSED if claim.client in agreed else Outcome.OUTSIDE
            for claim in claims.values()
        }

    def _meet(
        self,
        name: str,
        hearing: Hearing,
        claims: Mapping[Address, Claim],
        answers: Mapping[Address, bytes],
    ) -> None:
        """Offer a meeting, unless it has failed too often at this block."""

        sealed, ranks = self._sealed(hearing), self._given(hearing)

        def task(session: PartySession) -> None:
            parts, round_ = self._parts, hearing.round
            inputs = {
                claims[client].client: parts.answer_intake.required(round_, client, each).commitment
                for client, each in answers.items()
                if client in claims
            }
            given = Given(ranks, inputs)
            deliveries = self._deliveries(sealed, ranks[session.rank], claims, answers)
            weights = parts.judging.weights(round_)
            rules, of = parts.judging.rules, list(claims.values())
            found = judge(session, rules, weights, of, deliveries, given=given)
            body = Results(frozenset(found.accepted)).encode()
            parts.store.keep_sheet(round_.opening, hearing.slot(Slot.REVEAL), body)
            _LOGGER.info("replayed", extra={"hearing": name, "passed": sorted(found.accepted)})

        seats = self._parts.node.view.seats_of(hearing.round)
        if not self._runner(seats).offer(name, task):
            self._parts.node.agenda.again()

    def _deliveries(
        self,
        sealed: RoundView,
        rank: int | None,
        claims: Mapping[Address, Claim],
        answers: Mapping[Address, bytes],
    ) -> dict[ClientIndex, Delivery]:
        """Our parts of contributions, if we were given any, by client index."""
        if rank is None:
            return {}
        contributions, expected = self._parts.contributions, self._parts.judging.expected(rank)
        return {
            claim.client: contributions.delivery(sealed, client, expected, answers.get(client))
            for client, claim in claims.items()
        }

    def _blame(self, round_: RoundView, said: Common) -> None:
        """Note who said nothing at all about a meeting that failed, or that everyone said so."""
        seats = self._parts.messages.seats(round_)
        for seat in said.absent:
            self._parts.charges.note(round_, seats[seat], MemberFault.ABSENCE)
        if None not in said.values.values():
            self._parts.store.keep_failed_meeting(round_.epoch, seats)
            _LOGGER.warning("a meeting failed", extra={"round": round_.id, "seats": seats})
