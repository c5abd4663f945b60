"""Joint audits of proved steps: members exchange signed reports and words, and never meet.

A member computes its words alone, stores them, and reports with a commitment to them. When all have
reported it reveals them. Each component has two holders: where their words differ, or one was away,
a standby is given the key of that one component and answers too.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from opfl_chain.chain.bindings.types import MemberFault
from opfl_chain.learning.proved_step import statement_of
from opfl_chain.mpc.audit.proved import answer, proved_subject
from opfl_chain.protocol.audit_exchange import (
    Answers,
    Conclusion,
    Report,
    ReportRow,
    Reveal,
    Row,
    bound_by,
    conclude,
    proof_context,
    shirking_seats,
)
from opfl_chain.protocol.delivery import Claim, Delivery, check_delivery
from opfl_chain.protocol.echo import Common, Slot, readable
from opfl_chain.protocol.errors import DoesNotOpen, OutOfMemory, ProtocolError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.protocol.proof.closing import Statement, Tolerance
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.published_answers import PublishedMessage, encode_round
from opfl_chain.protocol.sealing import Complaint
from opfl_chain.protocol.unsealing import complain, complaint_stands
from opfl_chain.protocol.verdict import Outcome
from opfl_chain.roles.member.hearings import Hearing, Outcomes
from opfl_chain.roles.member.joint_audits import JointAudits
from opfl_chain.roles.member.parts import MemberParts
from opfl_chain.roles.member.referees import Referees
from opfl_chain.roles.node import Moment
from opfl_chain.roles.view.records import RoundView
from opfl_chain.system.files import append_line

_REFEREE_END: Final = 12
"""The part of a hearing at whose end the referee must have answered."""
_DISPUTES_SHOWN: Final = 8
ANSWERS_FILE: Final = "answers.jsonl"
"""Signed messages of all sessions, in the state folder: the member may publish it."""

_LOGGER = logging.getLogger("opfl.committee")


class ProvedAudits(JointAudits):
    """One member's part in the audits of proved steps."""

    hearings_needed = 1

    def __init__(self, parts: MemberParts, referees: Referees, tolerance: Tolerance) -> None:
        self._parts = parts
        self._referees = referees
        self._tolerance = tolerance
        self._stated: tuple[bytes, Statement] | None = None
        self._disputes: list[dict[str, Any]] = []

    @property
    def health(self) -> dict[str, Any]:
        return {"audit": None, "disputes": self._disputes[-_DISPUTES_SHOWN:]}

    def begin(self, head: int) -> None:
        del head

    def end(self) -> None:
        pass

    def close(self) -> None:
        pass

    def hear(self, hearing: Hearing, now: Moment) -> Outcomes | None:
        """Report, reveal and conclude, as far as the peers' messages allow.

        There is no statement at weights beyond what a proof can hold, to which one contribution
        that nobody audited may have led. Honest clients then sit out, and who is on the roll all
        the same has no valid answer.
        """
        claims = self._parts.contributions.claims(hearing.round)
        answers = self._parts.answers.agree(hearing, now)
        if answers is None:
            return None
        ends: dict[Address, Outcome | None] = dict.fromkeys(hearing.clients, Outcome.UNANSWERED)
        if hearing.attempt == 0:
            unaudited = (client for client, claim in claims.items() if not claim.audited)
            ends.update(dict.fromkeys(unaudited, Outcome.PASSED))
        if not answers:
            return ends
        if not self._have_all(hearing, answers) and not now.has_come(hearing.ends(2).said):
            self._parts.node.agenda.again()  # who has one may be back soon
            return None
        try:
            if not self._is_stated(hearing.round):
                for client, content_hash in answers.items():
                    self._parts.store.keep_invalid_answer(
                        hearing.round.opening, client, content_hash
                    )
                return ends
            concluded = self._exchange(hearing, {c: claims[c] for c in answers}, answers, now)
        except OutOfMemory as error:
            self._tell(hearing.round, [self._parts.node.address], str(error))
            self._parts.node.agenda.again()
            return None
        if concluded is None:
            return None
        for client, conclusion in concluded.items():
            ends[client] = conclusion.outcome
            if conclusion.outcome is Outcome.UNANSWERED:
                opening = hearing.round.opening
                self._parts.store.keep_invalid_answer(opening, client, answers[client])
        return ends

    def _have_all(self, hearing: Hearing, answers: Mapping[Address, bytes]) -> bool:
        """Return whether we have and can open every answer that we have to report on."""
        here = self._parts.answer_intake.hashes(hearing.round)
        return all(
            each in here.get(client, ())
            and self._parts.contributions.can_open(hearing.round, client, each)
            for client, each in answers.items()
        )

    def _exchange(
        self,
        hearing: Hearing,
        claims: Mapping[Address, Claim],
        answers: Mapping[Address, bytes],
        now: Moment,
    ) -> dict[Address, Conclusion] | None:
        """Return how the audit of every client that answered ends, or None for now."""
        round_, steps = hearing.round, self._parts.steps
        subject = self._subject(round_, claims, answers)
        reported = steps.take(
            round_,
            hearing.slot(Slot.REPORT),
            hearing.ends(2),
            now,
            lambda: self.report(hearing, claims, answers, subject).encode(),
        )
        if reported is None:
            return None
        indices = [claim.client for claim in claims.values()]
        reports = readable(
            reported.values, lambda seat, body: Report.decode(body, seat, subject, indices)
        )
        revealed = steps.take_bound(
            round_,
            hearing.slot(Slot.REVEAL),
            hearing.ends(4),
            now,
            lambda: self.reveal(hearing).encode(),
            bound_by(reports),
        )
        if revealed is None:
            return None
        reveals = readable(revealed.values, lambda seat, body: Reveal.decode(body, seat, indices))
        if reported.in_time and revealed.in_time:
            self._blame(hearing, {*reported.equivocators, *revealed.equivocators}, reports, reveals)
        concluded = self._conclude(hearing, claims, answers, reports, reveals, now)
        if concluded is not None:
            self._publish(hearing, {Slot.REPORT: reported, Slot.REVEAL: revealed})
        return concluded

    def _conclude(
        self,
        hearing: Hearing,
        claims: Mapping[Address, Claim],
        answers: Mapping[Address, bytes],
        reports: Mapping[int, Report],
        reveals: Mapping[int, Reveal],
        now: Moment,
    ) -> dict[Address, Conclusion] | None:
        def ends_with(
            judged: Mapping[ClientIndex, Mapping[int, Answer]],
        ) -> dict[Address, Conclusion]:
            found = {}
            for client, claim in claims.items():
                index = claim.client
                rows = {s: each.rows[index] for s, each in reports.items() if index in each.rows}
                words = {
                    s: each.answers[index] for s, each in reveals.items() if index in each.answers
                }
                standing = self._standing(hearing.round, client, answers[client], rows)
                found[client] = conclude(rows, words, standing=standing, referee=judged.get(index))
            return found

        found = ends_with({})
        wanted = {client: each.for_referee for client, each in found.items() if each.for_referee}
        if wanted:
            judged = self._referees.judged(hearing, wanted, answers)
            if judged is None and not now.has_come(hearing.part(_REFEREE_END)):
                return None
            if judged is not None:
                found = ends_with(judged.answers)
        for client, each in found.items():
            self._name(hearing.round, client, each)
        return found

    def _publish(self, hearing: Hearing, counted: Mapping[Slot, Common]) -> None:
        """Append the messages that counted in a session to a file that we may publish.

        Before the outcome is stored: a member killed in between publishes the same line again, and
        none is missing of an outcome that it has. Of a member that was away, or said two things of
        which none counts, nothing is there.
        """
        parts, round_ = self._parts, hearing.round
        roster, said = list(parts.node.job.roster), []
        found = [
            (author, hearing.slot(step), each)
            for step, view in counted.items()
            for seat, author in enumerate(parts.messages.seats(round_))
            for each in parts.messages.kept(round_, hearing.slot(step), seat)
            if each.body == view.values[seat]
        ]
        slot, referee = hearing.slot(Slot.REFEREE), self._referees.referee(round_)
        if referee is not None:
            message = parts.store.first_message(round_.opening, slot, referee)
            found += [(referee, slot, message)] if message is not None else []
        for author, slot, message in found:
            number = roster.index(author)
            said.append(PublishedMessage(number, slot, message.body, message.signature))
        line = encode_round(round_.number, round_.opening, said)
        append_line(parts.node.settings.state / ANSWERS_FILE, line)

    # --- our own words

    def report(
        self,
        hearing: Hearing,
        claims: Mapping[Address, Claim],
        answers: Mapping[Address, bytes],
        subject: bytes,
    ) -> Report:
        """Compute our words on every answer, store them, and report with commitments to them."""
        round_, seat = hearing.round, self._parts.messages.seat(hearing.round)
        rows: dict[ClientIndex, Row] = {}
        words: dict[ClientIndex, Answers] = {}
        for client, claim in claims.items():
            try:
                delivery = self._parts.contributions.delivery(
                    round_, client, self._parts.judging.expected(seat), answers[client]
                )
                words[claim.client] = self._words(round_, claim, delivery)
            except DoesNotOpen as error:
                _LOGGER.info("answer does not open", extra={"client": client, "why": str(error)})
                if self._parts.contributions.is_sealed_to_us(round_):
                    rows[claim.client] = self._complaint(round_, client, answers[client])
                continue
            except OutOfMemory:
                raise
            except ProtocolError as error:
                _LOGGER.warning("answer refused", extra={"client": client, "why": str(error)})
                continue
            rows[claim.client] = ReportRow(words[claim.client].commitment)
        sheet = Reveal(seat, words).encode()
        self._parts.store.replace_sheet(round_.opening, hearing.slot(Slot.REVEAL), sheet)
        return Report(seat, subject, rows)

    def reveal(self, hearing: Hearing) -> Reveal:
        """Return the words that our report commits to."""
        seat = self._parts.messages.seat(hearing.round)
        sheet = self._parts.store.sheet(hearing.round.opening, hearing.slot(Slot.REVEAL))
        return Reveal.decode(sheet, seat) if sheet is not None else Reveal(seat, {})

    def _words(self, round_: RoundView, claim: Claim, delivery: Delivery) -> Answers:
        seat = self._parts.messages.seat(round_)
        checked = check_delivery(self._parts.judging.expected(seat), claim, delivery)
        given = delivery.training_input
        context = self.context(round_, claim, given.commitment if given else b"")
        return answer(seat, self.statement(round_), context, checked)

    def context(self, round_: RoundView, claim: Claim, input_commitment: bytes) -> bytes:
        """Name the contribution that a proof is about."""
        separator = self._parts.node.job.domain.separator
        return proof_context(
            separator, round_.id, round_.opening, claim.client, claim.commitment, input_commitment
        )

    def _complaint(self, round_: RoundView, client: Address, content_hash: bytes) -> Complaint:
        """Complain of the contribution, if we missed the complaints of the roll, or of the answer.

        A complaint about the one that opens would be false, and cost our stake.
        """
        parts, seat = self._parts, self._parts.messages.seat(round_)
        if (complaint := parts.contributions.complaint(round_, client)) is not None:
            return complaint
        intake = parts.answer_intake
        bundle = intake.required(round_, client, content_hash)
        return complain(bundle, seat, parts.sealing_key, intake.context(round_, client))

    def _standing(
        self, round_: RoundView, client: Address, content_hash: bytes, rows: Mapping[int, Row]
    ) -> list[int]:
        """Seats whose complaint about an answer, or about its contribution, stands."""
        parts, found = self._parts, []
        intake = parts.answer_intake
        for seat, row in rows.items():
            bundle = intake.bundle(round_, client, content_hash)
            if not isinstance(row, Complaint) or bundle is None:
                continue
            key = parts.contributions.sealed_to(round_, seat)
            context, expected = intake.context(round_, client), intake.expected(round_)
            if complaint_stands(bundle, key, row, context, expected) or parts.contributions.stands(
                round_, client, seat, row
            ):
                found.append(seat)
        return found

    # --- faults of peers

    def _blame(
        self,
        hearing: Hearing,
        equivocators: set[int],
        reports: Mapping[int, Report],
        reveals: Mapping[int, Reveal],
    ) -> None:
        """Note who said less than it could; who said two things pays for that already."""
        round_, view = hearing.round, self._parts.node.view
        seats, original = self._parts.messages.seats(round_), view.round(round_.number) or round_
        opened_with = view.seats_of(original)
        sealed_to = [seat for seat, member in enumerate(seats) if member == opened_with[seat]]
        for seat in shirking_seats(reports, reveals, sealed_to) - equivocators:
            self._parts.charges.note(round_, seats[seat], MemberFault.ABSENCE)

    def _name(self, round_: RoundView, client: Address, conclusion: Conclusion) -> None:
        seats = self._parts.messages.seats(round_)
        for seat in conclusion.liars:
            self._parts.charges.note(round_, seats[seat], MemberFault.FALSEHOOD)
            self._tell(round_, [seats[seat]], "lied in an audit", client=client)
        for dispute in conclusion.disputes:
            members = [seats[seat] for seat in dispute.seats]
            self._tell(
                round_, members, "their answers differ", client=client, component=dispute.component
            )

    def _tell(self, round_: RoundView, members: list[Address], reason: str, **more: Any) -> None:
        """Name members in the log and in our health."""
        dispute = {"round": round_.number, "members": members, "reason": reason, **more}
        if dispute not in self._disputes:
            self._disputes.append(dispute)
            _LOGGER.warning("disputed audit", extra=dispute)

    # --- facts

    def _subject(
        self, round_: RoundView, claims: Mapping[Address, Claim], answers: Mapping[Address, bytes]
    ) -> bytes:
        """A digest of what all members must agree on before they report."""
        rules, weights = self._parts.judging.rules, self._parts.judging.weights(round_)
        facts = proved_subject(rules, weights, list(claims.values()), self.statement(round_))
        return keccak256(facts, *(answers[client] for client in claims))

    def _is_stated(self, round_: RoundView) -> bool:
        """Return whether there is a statement at the weights of a round."""
        try:
            self.statement(round_)
        except OutOfMemory:
            raise
        except ProtocolError as error:
            self._tell(round_, [], f"no step can be proved at these weights: {error}")
            return False
        return True

    def statement(self, round_: RoundView) -> Statement:
        """The statement of all steps at the weights of a round."""
        if self._stated is None or self._stated[0] != round_.model_hash:
            weights = self._parts.judging.weights(round_)
            stated = statement_of(self._parts.node.job.policy, self._tolerance, weights)
            self._stated = round_.model_hash, stated
        return self._stated[1]
