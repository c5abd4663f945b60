"""Joint audits of proved steps: members exchange signed reports and answers, and never meet.

A member computes its answers alone, stores them, and sends its report with a commitment to them.
When it has the reports of both peers it reveals its answers, and with those of both peers it has
the verdict. A restarted member says the same again, and peers that missed something ask for it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from opfl_chain.learning.proved_step import statement_of
from opfl_chain.mpc.audit.proved import examine, proved_subject
from opfl_chain.protocol.delivery import Claim
from opfl_chain.protocol.errors import (
    AnsweredOtherwise,
    EncodingError,
    OutOfMemory,
    ProtocolError,
)
from opfl_chain.protocol.exchange import (
    Answers,
    Conclusion,
    HeardOtherwise,
    Report,
    ReportRow,
    alone,
    audited_places,
    decode_revealed,
    decode_sheet,
    encode_answers,
    encode_revealed,
    proof_context,
    stated_subject,
    verdict_of,
)
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.protocol.proof.closing import Statement, Tolerance
from opfl_chain.protocol.proof.wires import StatementError
from opfl_chain.protocol.published_answers import ANSWERS, REPORT, encode_round
from opfl_chain.roles.claims import Claims
from opfl_chain.roles.member.audit_messages import AuditMessages, SignedMessage
from opfl_chain.roles.member.audits import Judging
from opfl_chain.roles.member.joint_audits import JointAudits
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.node import Node
from opfl_chain.roles.view.view import RoundView
from opfl_chain.system.files import append_line
from opfl_chain.transport.routes import Route

ANSWERS_FILE: Final = "answers.jsonl"
"""All signed messages of all rounds, in the state folder: the member may publish it."""
_DISPUTES_SHOWN: Final = 8

_LOGGER = logging.getLogger("opfl.committee")


class ProvedAudits(JointAudits):
    """One member's part in the audits of proved steps."""

    def __init__(
        self,
        node: Node,
        rank: int,
        store: MemberStore,
        claims: Claims,
        judging: Judging,
        tolerance: Tolerance,
    ) -> None:
        self._node = node
        self.rank = rank
        self._store = store
        self._claims = claims
        self._judging = judging
        self._tolerance = tolerance
        self.messages = AuditMessages(node, rank, store, self._tell_of_member)
        self._stated: tuple[bytes, Statement] | None = None
        self._disputes: list[dict[str, Any]] = []
        self._unread: dict[tuple[int, int], tuple[bytes, bytes, dict[str, Any]]] = {}
        """By round and rank: the subject of which a report is not, the report, and the dispute."""

    @property
    def health(self) -> dict[str, Any]:
        return {"audit": None, "disputes": self._disputes[-_DISPUTES_SHOWN:]}

    def routes(self) -> list[Route]:
        return self.messages.routes()

    def begin(self, head: int) -> None:
        del head

    def end(self) -> None:
        pass

    def close(self) -> None:
        pass

    # --- the exchange

    def judge(self, round_: RoundView) -> None:
        """Report, reveal and conclude, as far as the peers' messages allow.

        There is no statement at weights beyond what a proof can hold, to which one contribution
        that nobody audited may have led. Then all members judge alone, when their time comes. A
        member that cannot report does as well, and so do its peers.
        """
        claims = list(self._claims.of(round_).values())
        try:
            subject = self._subject(round_, claims)
            own = self.report(round_, claims, subject)
        except AnsweredOtherwise as error:
            self._tell_of_none(round_, f"we cannot audit: {error}")
            return
        except OutOfMemory as error:
            self._tell_of_none(round_, f"we cannot audit: {error}")
            self._node.agenda.again()
            return
        except (StatementError, EncodingError) as error:
            self._tell_of_none(round_, f"nobody can be audited at these weights: {error}")
            return
        told = self.messages.of_all(round_, REPORT, own)
        reports = [
            each
            for rank, message in told.items()
            if (each := self._read_report(round_, rank, message, subject, len(claims)))
        ]
        if len(reports) < len(self._node.job.members):
            return
        places, heard = audited_places(claims, reports), [each.body for each in told.values()]
        told = self.messages.of_all(round_, ANSWERS, self.reveal(round_, heard, places))
        sheets = [
            sheet
            for rank, message in told.items()
            if (sheet := self._read_answers(round_, rank, message, heard, places)) is not None
        ]
        if len(sheets) == len(self._node.job.members):
            self._conclude(round_, claims, reports, sheets)

    def report(self, round_: RoundView, claims: Sequence[Claim], subject: bytes) -> SignedMessage:
        """Return our report. The first time, compute all answers, and store both.

        A reorganisation may change who is audited: the exchange then begins anew. It may change
        the model as well, and with it the challenge: then we say nothing about words on which we
        have answered before, and nobody reveals anything without our report.
        """
        if (known := self.messages.own(round_, REPORT)) is not None:
            if stated_subject(known.body) == (subject, len(claims)):
                return known
            self._store.forget_exchange(round_.number)
        rows, answers = self.examine(round_, claims)
        for place, each in answers.items():
            self._require_one_challenge(round_, rows[place].leaves, each.transcript)
        report = Report(self.rank, subject, tuple(rows))
        signed = self.messages.sign(round_, REPORT, report.encode())
        sheet = encode_answers(self.rank, answers)
        self._store.keep_report(
            round_.number, self.rank, signed.body, signed.signature, sheet, len(answers)
        )
        return signed

    def examine(
        self, round_: RoundView, claims: Sequence[Claim]
    ) -> tuple[list[ReportRow], dict[int, Answers]]:
        """Check all deliveries, and answer on those that are audited and without fault."""

        def context_of(claim: Claim, input_commitment: bytes) -> bytes:
            return proof_context(
                self._node.job.domain.separator,
                round_.id,
                claim.client,
                round_.model_hash,
                claim.commitment,
                input_commitment,
            )

        return examine(
            self._judging.expected,
            self._statement(round_),
            context_of,
            claims,
            self._judging.deliveries(round_),
            _log_refusal,
        )

    def reveal(
        self, round_: RoundView, heard: Sequence[bytes], places: Sequence[int]
    ) -> SignedMessage:
        """Return our answers on the contributions that all members found sound."""
        if (known := self.messages.own(round_, ANSWERS)) is not None:
            return known
        sheet, count = self._store.answer_sheet(round_.number)
        kept = self.revealed(decode_sheet(sheet, self.rank, count))
        body = encode_revealed(self.rank, heard, {place: kept[place] for place in places})
        signed = self.messages.sign(round_, ANSWERS, body)
        report = heard[self.rank]
        rows = Report.decode(report, self.rank, *stated_subject(report)).rows
        challenges = {rows[place].leaves: kept[place].transcript for place in places}
        self._store.keep_answers(round_.number, self.rank, body, signed.signature, challenges)
        return signed

    def _require_one_challenge(self, round_: RoundView, leaves: bytes, transcript: bytes) -> None:
        """Require that we have not answered on these words to another challenge.

        An honest client has other words in every round. Who repeats those of another round fails.
        """
        if self._store.challenge(round_.number, leaves) not in (None, transcript):
            raise AnsweredOtherwise(
                f"we answered on a delivery of round {round_.number} to another challenge before"
            )

    def revealed(self, answers: dict[int, Answers]) -> dict[int, Answers]:
        """Return the answers to reveal: those that we committed to."""
        return answers

    def _conclude(
        self,
        round_: RoundView,
        claims: Sequence[Claim],
        reports: Sequence[Report],
        sheets: Sequence[Mapping[int, Answers]],
    ) -> None:
        """Publish everybody's reports and answers, and store the verdict that follows from them.

        Published first: a member killed in between publishes the same line again, and none is
        missing of a round that it has a verdict of.
        """
        verdict, ends = verdict_of(claims, reports, sheets)
        line = encode_round(round_.number, self.messages.published(round_))
        append_line(self._node.settings.state / ANSWERS_FILE, line)
        for place, end in ends.items():
            if end.accepted is None:
                self._tell_of_dispute(round_, claims[place].client, end)
        for place, claim in enumerate(claims):
            self._tell_of_findings(round_, claim.client, [each.rows[place] for each in reports])
        self._store.keep_judgement(round_.number, verdict)
        _LOGGER.info(
            "judged",
            extra={
                "round": round_.number,
                "passed": sorted(verdict.passed),
                "faults": {fault.client: fault.reason.name for fault in verdict.faults},
            },
        )

    def judge_again(self, round_: RoundView, clients: Sequence[Address]) -> None:
        """Store the verdict once more: answers to the same queries are the same."""
        verdict, claims = self._store.judgement(round_.number), self._claims.of(round_)
        if verdict is None or self.messages.own(round_, ANSWERS) is None:
            return
        for client in clients:
            passed = client in claims and claims[client].client in verdict.passed
            self._store.keep_second_replay(round_.number, client, passed=passed)

    def help(self, round_: RoundView, silent: Sequence[Address]) -> None:
        """Peers ask for our messages themselves."""
        del round_, silent

    # --- messages of the peers

    def _read_report(
        self, round_: RoundView, rank: int, message: SignedMessage, subject: bytes, count: int
    ) -> Report | None:
        """Return a peer's report, or None if it cannot be read.

        It may be about the round as it was before a reorganisation, of which the peer or we do not
        know yet. So it is forgotten and asked for again. The member is named if it says the same,
        until it says what we can read.
        """
        place = round_.number, rank
        try:
            report = Report.decode(message.body, rank, subject, count)
        except ProtocolError as error:
            reason = f"{error}: it lies, or sees another chain than we do"
            unread = subject, message.body, self._dispute_with(round_, rank, reason)
            if self._unread.get(place) == unread:
                self._tell(unread[2])
            self._unread[place] = unread
            self._store.forget_messages_of(*place)
            self._node.agenda.again()
            return None
        if (settled := self._unread.pop(place, None)) is not None:
            self._disputes = [each for each in self._disputes if each != settled[2]]
        return report

    def _read_answers(
        self,
        round_: RoundView,
        rank: int,
        message: SignedMessage,
        heard: Sequence[bytes],
        places: Sequence[int],
    ) -> dict[int, Answers] | None:
        try:
            return decode_revealed(message.body, rank, heard, places)
        except HeardOtherwise as error:
            members = [self._node.job.members[each] for each in error.suspects]
            self._tell({"round": round_.number, "members": members, "reason": str(error)})
            return None
        except ProtocolError as error:
            self._tell_of_member(round_, rank, str(error))
            return None

    def _tell_of_dispute(self, round_: RoundView, client: ClientIndex, end: Conclusion) -> None:
        """Name the members of whom one lies: in the log and in our health."""
        members = [self._node.job.members[rank] for rank in end.suspects]
        self._tell(
            {
                "round": round_.number,
                "client": client,
                "members": members,
                "component": end.component,
                "reason": "their answers differ" if len(members) > 1 else "broke its commitment",
            }
        )

    def _tell_of_findings(
        self, round_: RoundView, client: ClientIndex, rows: Sequence[ReportRow]
    ) -> None:
        """Name members whose finding nobody shares: each lies, or the client does."""
        for rank in alone(rows):
            fault = rows[rank].fault
            found = "other words" if fault is None else fault.name
            dispute = {
                "round": round_.number,
                "client": client,
                "members": [self._node.job.members[rank]],
                "reason": f"alone reports {found}: the member or the client lies",
            }
            self._tell(dispute)

    def _tell_of_none(self, round_: RoundView, reason: str) -> None:
        self._tell({"round": round_.number, "members": [], "reason": reason})

    def _tell_of_member(self, round_: RoundView, rank: int, reason: str) -> None:
        self._tell(self._dispute_with(round_, rank, reason))

    def _dispute_with(self, round_: RoundView, rank: int, reason: str) -> dict[str, Any]:
        member = self._node.job.members[rank]
        return {"round": round_.number, "members": [member], "reason": reason}

    def _tell(self, dispute: dict[str, Any]) -> None:
        if dispute not in self._disputes:
            self._disputes.append(dispute)
            _LOGGER.warning("disputed audit", extra=dispute)

    # --- facts

    def _subject(self, round_: RoundView, claims: Sequence[Claim]) -> bytes:
        rules, weights = self._judging.rules, self._judging.weights(round_)
        return proved_subject(rules, weights, claims, self._statement(round_))

    def _statement(self, round_: RoundView) -> Statement:
        if self._stated is None or self._stated[0] != round_.model_hash:
            weights = self._judging.weights(round_)
            stated = statement_of(self._node.job.policy, self._tolerance, weights)
            self._stated = round_.model_hash, stated
        return self._stated[1]


def _log_refusal(claim: Claim, reason: str) -> None:
    _LOGGER.info("delivery refused", extra={"client": claim.client, "reason": reason})
