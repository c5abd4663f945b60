"""Members that break the protocol, by name."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from opfl_chain.adversaries import flip_in_mpc, leak_in_mpc
from opfl_chain.adversaries.clients import JOINED_BY, CheatUnknown, cheats_of
from opfl_chain.adversaries.leak import GuessingAudits
from opfl_chain.mpc.session.errors import MpcError
from opfl_chain.mpc.session.party import PartySession
from opfl_chain.numerics.field import MODULUS
from opfl_chain.protocol.audit_exchange import Answers, Report, Reveal
from opfl_chain.protocol.delivery import Claim, Delivery, Held
from opfl_chain.protocol.echo import Signed, Slot
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.protocol.meeting import Results
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.roll import Complaints, Listed
from opfl_chain.protocol.signatures import CURVE_ORDER
from opfl_chain.protocol.statements import Statement
from opfl_chain.protocol.unsealing import complain
from opfl_chain.protocol.verdict import Outcome, Verdict
from opfl_chain.roles.member.hearings import Hearing
from opfl_chain.roles.member.meetings import MeetingAudits, PartyOf
from opfl_chain.roles.member.member import Member
from opfl_chain.roles.member.messages import Messages
from opfl_chain.roles.member.parts import MemberParts
from opfl_chain.roles.member.proved_audits import ProvedAudits
from opfl_chain.roles.member.rolls import RollDuty
from opfl_chain.roles.member.sums import MemberSums
from opfl_chain.roles.node import Moment
from opfl_chain.roles.settings import MemberSettings
from opfl_chain.roles.view.records import RoundView
from opfl_chain.transport.routes import Refusal, Request, Response, Route

_MOMENT: Final = 0.2
"""Seconds for which a member hangs in virtual time."""

_LOGGER = logging.getLogger("opfl.committee")


class WithholdsBeacon(Member):
    """Signs nothing, so that everybody is audited."""

    def sign_beacon(self, round_: RoundView, now: Moment) -> None:
        del round_, now


class SignsHigh(Member):
    """Signs everything with the high s that contracts refuse."""

    def sign(self, statement: Statement) -> bytes:
        signature = super().sign(statement)
        s = CURVE_ORDER - int.from_bytes(signature[32:64], "big")
        return signature[:32] + s.to_bytes(32, "big") + bytes([55 - signature[64]])


# --- roll


class _ListsFew(RollDuty):
    def _list(self, round_: RoundView) -> bytes:
        """Name the first and the last client alone: a victim and an accomplice."""
        listed = Listed.decode(super()._list(round_), len(self._node.view.clients())).hashes
        ends = sorted(listed)[:1] + sorted(listed)[-1:]
        return Listed({client: listed[client] for client in ends}).encode()


class Few(Member):
    """Takes contributions of all but lists two, so that the sum would show one of them."""

    ROLLS = _ListsFew


class _ComplainsOfAll(RollDuty):
    def _complaints(
        self, round_: RoundView, named: dict[ClientIndex, bytes], lists: dict[int, Listed]
    ) -> Complaints:
        super()._complaints(round_, named, lists)
        seat, filed = self._messages.seat(round_), {}
        for client, content_hash in named.items():
            address = self._address(client)
            bundle = self._intake.required(round_, address, content_hash)
            context = self._intake.context(round_, address)
            filed[client] = content_hash, complain(bundle, seat, self._sealing_key, context)
        return Complaints(filed)


class _ComplainsOfAnswers(ProvedAudits):
    def report(
        self,
        hearing: Hearing,
        claims: Mapping[Address, Claim],
        answers: Mapping[Address, bytes],
        subject: bytes,
    ) -> Report:
        made = super().report(hearing, claims, answers, subject)
        rows = {
            claim.client: self._complaint(hearing.round, client, answers[client])
            for client, claim in claims.items()
        }
        return replace(made, rows=rows)


class _ComplainsOfAnswersInMpc(MeetingAudits):
    def _complaints(self, round_: RoundView, answers: Mapping[Address, bytes]) -> Complaints:
        parts, filed = self._parts, {}
        seat, clients = parts.messages.seat(round_), parts.node.view.clients()
        for client, content_hash in answers.items():
            bundle = parts.answer_intake.required(round_, client, content_hash)
            context = parts.answer_intake.context(round_, client)
            complaint = complain(bundle, seat, parts.sealing_key, context)
            filed[clients[client].index] = content_hash, complaint
        return Complaints(filed)


class Frames(Member):
    """Complains of every contribution and every answer, though all of them open."""

    ROLLS = _ComplainsOfAll
    PROVED_AUDITS = _ComplainsOfAnswers
    MEETINGS = _ComplainsOfAnswersInMpc


class RefusesDeliveries(Member):
    """Takes nothing from clients."""

    def routes(self) -> list[Route]:
        return [
            replace(each, handler=_refuse)
            if each.method == "POST"
            and ("contributions" in each.pattern or "answers" in each.pattern)
            else each
            for each in super().routes()
        ]


class _SaysTwoThings(Messages):
    def tell(self, round_: RoundView, slot: int, own: Signed) -> None:
        """Tell the last peer that nobody delivered, and the other one the truth."""
        if slot == Slot.LIST:
            _, member = self.peers(round_)[-1]
            if not self._store.has_told(round_.opening, slot, member):
                body = Listed({}).encode()
                signature = self._node.sign(self.statement(round_, slot, body))
                path = f"/rounds/{round_.id}/messages/{slot}/{self.seat(round_)}"
                self._node.peers.post_to_member(member, path, body, signature)
                self._store.keep_told(round_.opening, slot, member)
        super().tell(round_, slot, own)


class Equivocates(Member):
    """Signs two different lists, one for each peer."""

    MESSAGES = _SaysTwoThings


class Hangs(Member):
    """Takes part, and never answers a request of a peer; only deliveries of clients it takes.

    In virtual time, where nobody gives a peer up for long, it refuses after a moment.
    """

    def __init__(self, settings: MemberSettings) -> None:
        self.ending = threading.Event()
        super().__init__(settings)
        self._open.callback(self.ending.set)

    def routes(self) -> list[Route]:
        return [
            each
            if each.method == "POST"
            and ("contributions" in each.pattern or "answers" in each.pattern)
            else replace(each, handler=self._hang)
            for each in super().routes()
        ]

    def _hang(self, request: Request) -> Response:
        self.ending.wait(_MOMENT if self._in_virtual_time else None)
        return _refuse(request)


# --- audits and verdicts


class Copies(Member):
    """Takes no part in audits, and attests what the others have decided."""

    def judge(self, round_: RoundView, now: Moment) -> None:
        passes = self.view.decided_passes(round_) if round_.verdict_hash else None
        attested = self.address in self.view.attestations(round_.id)
        if passes is not None and not attested and not now.has_come(round_.schedule.attest):
            self.attest(round_, passes)

    def _hear_later(self, round_: RoundView, now: Moment) -> None:
        del round_, now


class SkipsAudits(Member):
    """Never joins an audit, and attests nothing."""

    def judge(self, round_: RoundView, now: Moment) -> None:
        del round_, now

    def _hear_later(self, round_: RoundView, now: Moment) -> None:
        del round_, now


class _LeavesMeetings(MeetingAudits):
    def __init__(self, parts: MemberParts, party: PartyOf, join_seconds: float) -> None:
        self._left: set[str] = set()
        super().__init__(parts, party, join_seconds)

    def _meet(
        self,
        name: str,
        hearing: Hearing,
        claims: Mapping[Address, Claim],
        answers: Mapping[Address, bytes],
    ) -> None:
        """Leave when all have come, and do not come again."""

        def leave(session: PartySession) -> None:
            self._left.add(name)
            raise MpcError(f"{session.audit}: enough")

        if name not in self._left:
            seats = self._parts.node.view.seats_of(hearing.round)
            self._runner(seats).offer(name, leave)


class BreaksMeetings(Member):
    """Ends every meeting inside MPC, and says like everybody that it did not come to its end."""

    MEETINGS = _LeavesMeetings


class WithholdsVerdict(Member):
    """Takes part in audits and attests nothing."""

    def attest(self, round_: RoundView, passes: bytes) -> None:
        del round_, passes


class Lies(Member):
    """Attests that everybody passed, whatever was found; if that is true, that nobody did."""

    def attest(self, round_: RoundView, passes: bytes) -> None:
        everybody = {claim.client for claim in self.contributions.claims(round_).values()}
        passed = set() if set(Verdict.decode(passes).passed) == everybody else everybody
        super().attest(round_, Verdict.of(passed).passes_bytes)


class _FalseAnswers(ProvedAudits):
    def _words(self, round_: RoundView, claim: Claim, delivery: Delivery) -> Answers:
        right = super()._words(round_, claim, delivery)
        return replace(right, own=_changed(right.own), following=_changed(right.following))


class AnswersFalsely(Member):
    """Changes a word of every answer on a proved step, or a bit opened inside MPC.

    Either would turn the verdict around.
    """

    PROVED_AUDITS = _FalseAnswers
    MPC_PROGRAM = flip_in_mpc.PROGRAM


class _OtherAnswers(ProvedAudits):
    def reveal(self, hearing: Hearing) -> Reveal:
        kept = super().reveal(hearing)
        others = {c: replace(each, own=_changed(each.own)) for c, each in kept.answers.items()}
        return replace(kept, answers=others)


class RevealsOthers(Member):
    """Reveals other answers on proved steps than it committed to."""

    PROVED_AUDITS = _OtherAnswers


class _ToldBits(MeetingAudits):
    def _results(
        self,
        hearing: Hearing,
        claims: Mapping[Address, Claim],
        answers: Mapping[Address, bytes],
        now: Moment,
    ) -> dict[int, Outcome | None] | None:
        """Log the bits that the replay before the verdict opened: secret ones of each client."""
        found = super()._results(hearing, claims, answers, now)
        sheet = self._parts.store.sheet(hearing.round.opening, hearing.slot(Slot.REVEAL))
        told = Results.decode(sheet) if sheet is not None else None
        if found is not None and told is not None and hearing.attempt == 0:
            bits = {str(claim.client): claim.client not in told.passed for claim in claims.values()}
            _LOGGER.info("leak", extra={"round": hearing.round.number, "bits": bits})
        return found


class Leaks(Member):
    """Makes verdicts depend on secrets: on guesses of words, or inside MPC on a bit of the input.

    With proved steps it wants several sessions as well.
    """

    PROVED_AUDITS = GuessingAudits
    MEETINGS = _ToldBits
    MPC_PROGRAM = leak_in_mpc.PROGRAM


# --- sums


class _FalseSums(MemberSums):
    def held(self, round_: RoundView) -> Held | None:
        found = super().held(round_)
        return (found[0] + np.uint64(1), found[1]) if found is not None else None


class SumsFalsely(Member):
    """States a false component of every sum."""

    SUMS = _FalseSums


def _changed(answer: Answer) -> Answer:
    return replace(answer, rest=(answer.rest + 1) % MODULUS)


MEMBERS: Final = cheats_of(
    "members",
    Member,
    {
        "withhold-beacon": WithholdsBeacon,
        "high-s": SignsHigh,
        "few": Few,
        "frame": Frames,
        "refuse-deliveries": RefusesDeliveries,
        "equivocate": Equivocates,
        "hang": Hangs,
        "copy": Copies,
        "skip-audits": SkipsAudits,
        "break-meetings": BreaksMeetings,
        "withhold-verdict": WithholdsVerdict,
        "lie": Lies,
        "flip": AnswersFalsely,
        "reveal-others": RevealsOthers,
        "leak": Leaks,
        "sums": SumsFalsely,
    },
)

OF_PROVED_STEPS: Final = ("flip", "reveal-others", "leak")
"""Cheats with messages about proved steps. Inside MPC some of them are other attacks, and work."""


def member_named(cheat: str) -> type[Member]:
    """Return the member with this cheat, or with several in different duties: `flip+sums`."""
    kinds = [MEMBERS[name] for name in cheat.split(JOINED_BY)]
    if len(kinds) == 1:
        return kinds[0]
    ours = {name for each in Member.__mro__ for name in vars(each) if not name.startswith("__")}
    changed = [name for kind in kinds for name in vars(kind) if name in ours - {"_abc_impl"}]
    if len(set(changed)) < len(changed):
        raise CheatUnknown(cheat, MEMBERS.names())
    return type(cheat, tuple(kinds), {})


def _refuse(request: Request) -> Response:
    del request
    raise Refusal(503, "come back later")
