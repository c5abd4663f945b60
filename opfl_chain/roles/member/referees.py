"""Disputes among seats, settled by a standby that recomputes single components.

Seats hand the standby keys of the components that they differ about, and it answers for these. It
verifies what the keys open against leaf hashes that the client signed, so no seat can make it err.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from typing import Final, TypeVar

from opfl_chain.chain.keys import signer_of
from opfl_chain.chain.rpc import tohex
from opfl_chain.protocol.audit_exchange import RefereeReveal, proof_context
from opfl_chain.protocol.bundle import Bundle
from opfl_chain.protocol.echo import SLOTS_PER_ATTEMPT, Signed, Slot, slot_number
from opfl_chain.protocol.errors import MessageError, ProtocolError
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.protocol.proof.answers import Query
from opfl_chain.protocol.proof.closing import Statement
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.referee import (
    MOST_COMPONENTS,
    NOTHING,
    HandedKeys,
    HandOver,
    Wanted,
    agreed_wanted,
)
from opfl_chain.protocol.ring import UnsignedWords
from opfl_chain.protocol.roll import RollEntry
from opfl_chain.protocol.shares import held_indices
from opfl_chain.protocol.signatures import SIGNATURE_BYTES
from opfl_chain.protocol.sums import decode_judged, encode_judged, part_hash
from opfl_chain.protocol.unsealing import body_key, open_answer_component, open_gradient_component
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.roles.member.attempts import as_said
from opfl_chain.roles.member.hearings import Hearing
from opfl_chain.roles.member.intake import Intake
from opfl_chain.roles.member.parts import MemberParts
from opfl_chain.roles.member.requests import round_in, seat_in, slot_in
from opfl_chain.roles.peers import bytes_field, hex_field
from opfl_chain.roles.view.records import RoundView
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.routes import Refusal, Request, Response, Route

_ROW_BYTES: Final = 256
_ROWS_OF_CLIENT: Final = 3

_LOGGER = logging.getLogger("opfl.committee")


StatementOf = Callable[[RoundView], Statement]


class Referees:
    """Both sides of a dispute: hand-overs of seats, and answers of a standby."""

    def __init__(self, parts: MemberParts, statement: StatementOf) -> None:
        """`statement` returns what steps of a round are proved by."""
        self._parts = parts
        self._statement = statement
        self._settling = threading.Lock()

    def routes(self) -> list[Route]:
        most = _ROW_BYTES * _ROWS_OF_CLIENT * self._parts.node.job.terms.max_clients
        path = "/rounds/{round}/referee/{slot}/{seat}"
        return [Route("POST", path, self.take, max_body_bytes=most, signed=True)]

    # --- of a seat

    def judged(
        self,
        hearing: Hearing,
        wanted: Mapping[Address, tuple[int, ...]],
        answers: Mapping[Address, bytes],
    ) -> RefereeReveal | None:
        """Ask the standby for its words on components; None while it has not answered.

        Without a standby there are no words, and what is disputed stays undecided.
        """
        if (referee := self.referee(hearing.round)) is None:
            return RefereeReveal(0, {})
        number = list(self._parts.node.job.roster).index(referee)
        handed = self._hand_over(hearing.round, referee, wanted, answers)
        body = self._ask(hearing.round, hearing.slot(Slot.REFEREE), referee, handed)
        return _read(body, lambda body: RefereeReveal.decode(body, number))

    def judged_sum(self, round_: RoundView, disputed: Collection[int]) -> dict[int, bytes] | None:
        """Ask the standby for hashes of components of the sum; None while it has not answered."""
        referee = self.referee(round_)
        passes = self._parts.node.view.decided_passes(round_)
        if referee is None or passes is None:
            return {}
        passed = Verdict.decode(passes).passed
        wanted = {
            client: tuple(disputed)
            for client, claim in self._parts.contributions.claims(round_).items()
            if claim.client in passed
        }
        handed = self._hand_over(round_, referee, wanted, {})
        body = self._ask(round_, slot_number(Slot.SUM_REFEREE), referee, handed)
        return _read(body, decode_judged)

    def referee(self, round_: RoundView) -> Address | None:
        """The first of the roster that has staked and never had a seat in a round."""
        view = self._parts.node.view
        original = view.round(round_.number) or round_
        seats = {*view.seats_of(original), *view.seats_of(round_)}
        return next((m for m in view.roster() if m not in seats and view.joined(m)), None)

    def _hand_over(
        self,
        round_: RoundView,
        referee: Address,
        wanted: Mapping[Address, tuple[int, ...]],
        answers: Mapping[Address, bytes],
    ) -> HandOver:
        """Say what is to be recomputed, with the keys of components that we hold ourselves."""
        seat, found = self._parts.messages.seat(round_), {}
        for entry in self._parts.store.roll(round_.opening):
            answer = answers.get(entry.address)
            for component in wanted.get(entry.address, ()):
                if not self._parts.store.may_show(
                    round_.opening, referee, entry.address, component, MOST_COMPONENTS
                ):
                    continue
                keys = HandedKeys()
                if component in held_indices(seat):
                    keys = self._keys(round_, entry, component, answer)
                place = Wanted(entry.client, component, entry.content_hash, answer or NOTHING)
                found[place] = keys
        return HandOver(found)

    def _keys(
        self, round_: RoundView, entry: RollEntry, component: int, answer: bytes | None
    ) -> HandedKeys:
        def key_of(intake: Intake, content_hash: bytes) -> bytes:
            bundle = intake.required(round_, entry.address, content_hash)
            context, seat = intake.context(round_, entry.address), parts.messages.seat(round_)
            return body_key(bundle, component, seat, parts.sealing_key, context)

        parts = self._parts
        gradient = key_of(parts.gradient_intake, entry.content_hash)
        return HandedKeys(gradient, key_of(parts.answer_intake, answer) if answer else NOTHING)

    def _ask(
        self, round_: RoundView, slot: int, standby: Address, handed: HandOver
    ) -> bytes | None:
        """Hand over what we have; return the standby's signed answer once it is there."""
        parts, seat = self._parts, self._parts.messages.seat(round_)
        said = parts.messages.say(round_, slot, handed.encode())
        path = f"/rounds/{round_.id}/referee/{slot}/{seat}"
        try:
            answer = parts.node.peers.post_to_member(
                standby, path, said.body, said.signature, patient=True
            )
            body = bytes_field(answer, "body")
            signature = hex_field(answer, "signature", SIGNATURE_BYTES)
        except TransportError as error:
            _LOGGER.info("no referee yet", extra={"member": standby, "reason": str(error)})
            parts.node.agenda.again()
            return None
        statement = parts.messages.statement(round_, slot, body)
        if signer_of(statement, parts.node.job.domain, signature) != standby:
            return None
        parts.store.keep_message(round_.opening, slot, standby, Signed(body, signature))
        return body

    # --- of a standby

    def take(self, request: Request) -> Response:
        """Take a seat's hand-over, and answer once all that two seats want can be opened."""
        parts, round_ = self._parts, round_in(self._parts.node, request)
        slot, seat = slot_in(request), seat_in(request)
        if slot % SLOTS_PER_ATTEMPT not in (Slot.REFEREE, Slot.SUM_REFEREE):
            raise Refusal(HTTPStatus.NOT_FOUND, f"slot {slot} has no referee")
        round_ = as_said(parts.node, round_, slot)
        if self.referee(round_) != parts.node.address:
            # Who has a seat may have said what it wants in this slot: a second message would cost
            # its stake.
            raise Refusal(HTTPStatus.FORBIDDEN, "this member is not the referee of this session")
        parts.messages.take_any(request)
        kept = parts.messages.own(round_, slot)
        if kept is None:
            with self._settling:
                # The request of another seat may have settled it while this one waited.
                kept = parts.messages.own(round_, slot)
                body = kept.body if kept else self._settled(round_, slot, seat)
            if body is None:
                raise Refusal(HTTPStatus.TOO_EARLY, f"keys from seat {seat} are still missing")
            kept = kept or parts.messages.say(round_, slot, body)
        return Response.json({"body": tohex(kept.body), "signature": tohex(kept.signature)})

    def _settled(self, round_: RoundView, slot: int, asking: int) -> bytes | None:
        """Recompute what two seats want, or return None while keys are missing.

        The seat that asks is there, so bundles are fetched from it first.
        """
        parts = self._parts
        most, handed = parts.node.job.terms.max_clients, []
        for seat in range(len(parts.messages.seats(round_))):
            message = parts.messages.first(round_, slot, seat)
            found = _read(
                message.body if message else None, lambda body: HandOver.decode(body, most)
            )
            if found is not None:
                handed.append(found)
        wanted = agreed_wanted(handed)
        if not wanted:
            return None
        seats = list(parts.node.view.seats_of(round_))
        first = parts.messages.seats(round_)[asking]
        for place in wanted:
            client = self._client(place)
            parts.gradient_intake.fetch(round_, client, place.contribution, seats, first)
            if place.answer != NOTHING:
                parts.answer_intake.fetch(round_, client, place.answer, seats, first)
        if slot % SLOTS_PER_ATTEMPT == Slot.SUM_REFEREE:
            return self._summed(round_, wanted, handed)
        return self._answered(round_, wanted, handed)

    def _summed(
        self, round_: RoundView, wanted: list[Wanted], handed: list[HandOver]
    ) -> bytes | None:
        """Add up components of the contributions that two seats name."""
        words = self._parts.node.job.boundary.coordinates
        sums: dict[int, UnsignedWords] = {}
        for place in wanted:
            part = self._gradient(round_, place, handed)
            if part is None:
                return None
            added = sums.get(place.component)
            sums[place.component] = part[:words] if added is None else added + part[:words]
        return encode_judged({index: part_hash(each) for index, each in sums.items()})

    def _answered(
        self, round_: RoundView, wanted: list[Wanted], handed: list[HandOver]
    ) -> bytes | None:
        """Answer for components of contributions that are audited."""
        parts = self._parts
        found: dict[ClientIndex, dict[int, Answer]] = {}
        for place in wanted:
            gradient = self._gradient(round_, place, handed)
            answer = self._answer(round_, place, gradient, handed)
            if answer is None:
                return None
            found.setdefault(place.client, {})[place.component] = answer
        number = list(parts.node.job.roster).index(parts.node.address)
        return RefereeReveal(number, found).encode()

    def _gradient(
        self, round_: RoundView, place: Wanted, handed: list[HandOver]
    ) -> UnsignedWords | None:
        parts, client = self._parts, self._client(place)
        bundle = self._bundle(parts.gradient_intake, round_, client, place.contribution)
        expected = parts.judging.expected(0)
        for each in handed:
            if bundle is None or place not in each.keys:
                continue
            with contextlib.suppress(ProtocolError):  # another seat may hand the right key
                key = each.keys[place].gradient
                part = open_gradient_component(bundle, place.component, key, expected)
                return part.words(expected.package_words(expected.gradient_words))
        return None

    def _answer(
        self,
        round_: RoundView,
        place: Wanted,
        gradient: UnsignedWords | None,
        handed: list[HandOver],
    ) -> Answer | None:
        parts, client = self._parts, self._client(place)
        answer = self._bundle(parts.answer_intake, round_, client, place.answer)
        contribution = self._bundle(parts.gradient_intake, round_, client, place.contribution)
        expected = parts.judging.expected(0)
        for each in handed:
            if answer is None or contribution is None or gradient is None:
                return None
            if place not in each.keys:
                continue
            with contextlib.suppress(ProtocolError):  # another seat may hand the right key
                key = each.keys[place].answer
                given, part, leaves = open_answer_component(answer, place.component, key, expected)
                context = proof_context(
                    parts.node.job.domain.separator,
                    round_.id,
                    round_.opening,
                    place.client,
                    contribution.commitment,
                    answer.commitment,
                )
                query = Query.of(self._statement(round_), context, leaves)
                words = given.words(expected.package_words(expected.input_words))
                return query.answer(part, gradient, words)
        return None

    def _bundle(
        self, intake: Intake, round_: RoundView, client: Address, content_hash: bytes
    ) -> Bundle | None:
        intake.fetch(round_, client, content_hash, list(self._parts.node.view.seats_of(round_)))
        return intake.bundle(round_, client, content_hash)

    def _client(self, place: Wanted) -> Address:
        for each in self._parts.node.view.clients().values():
            if each.index == place.client:
                return each.address
        raise MessageError(f"there is no client {place.client}")


Read = TypeVar("Read")


def _read(body: bytes | None, decode: Callable[[bytes], Read]) -> Read | None:
    """Read what another member said; what cannot be read is as if it had not been said."""
    try:
        return decode(body) if body is not None else None
    except ProtocolError as error:
        _LOGGER.warning("message not understood", extra={"reason": str(error)})
        return None
