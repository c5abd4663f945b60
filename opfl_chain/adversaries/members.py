"""Members that break the protocol, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from opfl_chain.adversaries.clients import cheats_of
from opfl_chain.adversaries.leak import GuessingAudits
from opfl_chain.numerics.field import MODULUS
from opfl_chain.protocol.delivery import Claim
from opfl_chain.protocol.exchange import Answers, ReportRow
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.roles.member.member import Member
from opfl_chain.roles.member.proved_audits import ProvedAudits
from opfl_chain.roles.node import Moment
from opfl_chain.roles.view.view import RoundView
from opfl_chain.transport.routes import Refusal, Request, Response, Route


class WithholdsBeacon(Member):
    """Signs nothing, so that everybody is audited."""

    def sign_beacon(self, round_: RoundView, now: Moment) -> None:
        del round_, now


class RefusesDeliveries(Member):
    """Refuses all deliveries, then claims that clients delivered nothing."""

    def routes(self) -> list[Route]:
        return [
            replace(each, handler=_refuse) if "deliveries" in each.pattern else each
            for each in super().routes()
        ]


class SkipsAudits(Member):
    """Never joins an audit, and attests nothing."""

    def judge(self, round_: RoundView, now: Moment) -> None:
        del round_, now


class WithholdsVerdict(Member):
    """Takes part in audits and attests nothing."""

    def attest(self, round_: RoundView, verdict: Verdict) -> None:
        del round_, verdict


class Lies(Member):
    """Attests that everybody passed, whatever was found; if that is true, that nobody did."""

    def attest(self, round_: RoundView, verdict: Verdict) -> None:
        everybody = {claim.client for claim in self.claims.of(round_).values()}
        passed = set() if set(verdict.passed) == everybody else everybody
        super().attest(round_, Verdict.of(passed, {}))


class Accuses(Member):
    """Attests that those who passed failed their replay."""

    def attest(self, round_: RoundView, verdict: Verdict) -> None:
        faults = dict.fromkeys(verdict.passed, FaultReason.REPLAY_OUTSIDE)
        super().attest(round_, Verdict.of(set(), faults))


class _FalseAnswers(ProvedAudits):
    def examine(
        self, round_: RoundView, claims: Sequence[Claim]
    ) -> tuple[list[ReportRow], dict[int, Answers]]:
        rows, answers = super().examine(round_, claims)
        for place, right in answers.items():
            false = replace(right, own=_changed(right.own), following=_changed(right.following))
            answers[place] = false
            rows[place] = replace(rows[place], commitment=false.commitment)
        return rows, answers


class AnswersFalsely(Member):
    """Changes a word of every answer on a proved step, to turn the verdict around."""

    PROVED_AUDITS = _FalseAnswers


class _OtherAnswers(ProvedAudits):
    def revealed(self, answers: dict[int, Answers]) -> dict[int, Answers]:
        return {place: replace(each, own=_changed(each.own)) for place, each in answers.items()}


class RevealsOthers(Member):
    """Reveals other answers on proved steps than it committed to."""

    PROVED_AUDITS = _OtherAnswers


class _Framed(ProvedAudits):
    def examine(
        self, round_: RoundView, claims: Sequence[Claim]
    ) -> tuple[list[ReportRow], dict[int, Answers]]:
        del round_
        return [ReportRow(FaultReason.COMMITMENT_MISMATCH) for _ in claims], {}


class Frames(Member):
    """Reports a fault in every delivery of a proved step."""

    PROVED_AUDITS = _Framed


class Leaks(Member):
    """Guesses secret words, so that verdicts would tell which guess is right."""

    PROVED_AUDITS = GuessingAudits


class _Silent(ProvedAudits):
    def routes(self) -> list[Route]:
        return []

    def judge(self, round_: RoundView) -> None:
        del round_


class AnswersNothing(Member):
    """Takes no part in exchanges on proved steps, and decides alone."""

    PROVED_AUDITS = _Silent


def _changed(answer: Answer) -> Answer:
    return replace(answer, rest=(answer.rest + 1) % MODULUS)


MEMBERS: Final = cheats_of(
    "members",
    Member,
    {
        "withhold-beacon": WithholdsBeacon,
        "refuse-deliveries": RefusesDeliveries,
        "skip-audits": SkipsAudits,
        "withhold-verdict": WithholdsVerdict,
        "lie": Lies,
        "accuse": Accuses,
        "flip": AnswersFalsely,
        "reveal-others": RevealsOthers,
        "frame": Frames,
        "leak": Leaks,
        "answer-nothing": AnswersNothing,
    },
)


def _refuse(request: Request) -> Response:
    del request
    raise Refusal(503, "come back later")
