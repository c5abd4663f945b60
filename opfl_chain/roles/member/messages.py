"""The signed messages of members in the slots of a round: sent, asked for, stored and served.

A message is stored before it is used or sent. The first one of a member in a slot is what it says;
another one of the same slot is kept as evidence against it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from opfl_chain.chain.keys import signer_of
from opfl_chain.chain.rpc import tohex, unhex
from opfl_chain.protocol.echo import (
    SLOTS_PER_ATTEMPT,
    Bound,
    Echo,
    Signed,
    echo_of,
    is_echo,
    is_hand_over,
    is_known,
)
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.signatures import SIGNATURE_BYTES
from opfl_chain.protocol.statements import MemberMessage
from opfl_chain.roles.member.attempts import as_said, attempt_at
from opfl_chain.roles.member.requests import round_in, seat_in, signature_in, slot_in
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.node import Node
from opfl_chain.roles.peers import bytes_field, hex_field, object_in
from opfl_chain.roles.view.records import RoundView
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.routes import Refusal, Request, Response, Route

_FIXED_BYTES: Final = 1 << 10
_BYTES_OF_CLIENT: Final = 1 << 9
"""No message has more for a client: a hand-over has three rows of 133 bytes."""
MOST_IN_SLOT: Final = 2
"""Messages of one member that are kept of a slot: two are evidence enough."""
_HASH_BYTES: Final = 32

_LOGGER = logging.getLogger("opfl.committee")


class Messages:
    """The messages that one member has."""

    def __init__(self, node: Node, store: MemberStore) -> None:
        self._node = node
        self._store = store

    def routes(self) -> list[Route]:
        path = "/rounds/{round}/messages/{slot}/{seat}"
        return [
            Route("POST", path, self.take, max_body_bytes=self._most_bytes, signed=True),
            Route("GET", path, self.serve_heard),
            Route("GET", path + "/{hash}", self.serve),
        ]

    @property
    def _most_bytes(self) -> int:
        return _FIXED_BYTES + _BYTES_OF_CLIENT * self._node.job.terms.max_clients

    def seat(self, round_: RoundView) -> int:
        """Our own seat in a round."""
        return self.seats(round_).index(self._node.address)

    def seats(self, round_: RoundView) -> list[Address]:
        return list(self._node.view.seats_of(round_))

    def peers(self, round_: RoundView) -> list[tuple[int, Address]]:
        """Seats and addresses of the others in a round."""
        seats = enumerate(self.seats(round_))
        return [(seat, member) for seat, member in seats if member != self._node.address]

    def own(self, round_: RoundView, slot: int) -> Signed | None:
        """Our own message in a slot, if it is made."""
        return self._store.first_message(round_.opening, slot, self._node.address)

    def first(self, round_: RoundView, slot: int, seat: int) -> Signed | None:
        """Return the first message of a seat in a slot that we have: that is what it says."""
        return self._store.first_message(round_.opening, slot, self.seats(round_)[seat])

    def kept(self, round_: RoundView, slot: int, seat: int) -> list[Signed]:
        """Return the messages of a seat in a slot that we have."""
        return self._store.messages(round_.opening, slot, self.seats(round_)[seat])

    def say(self, round_: RoundView, slot: int, body: bytes) -> Signed:
        """Sign and store our message; one that is stored already stands."""
        if (known := self.own(round_, slot)) is not None:
            return known
        message = Signed(body, self._node.sign(self.statement(round_, slot, body)))
        self._store.keep_message(round_.opening, slot, self._node.address, message)
        return message

    def tell(self, round_: RoundView, slot: int, own: Signed) -> None:
        """Send our message to the peers that have not confirmed that they have it."""
        path, peers = f"/rounds/{round_.id}/messages/{slot}/{self.seat(round_)}", self._node.peers
        untold = [
            member
            for _, member in self.peers(round_)
            if not self._store.has_told(round_.opening, slot, member)
        ]

        def post(member: Address) -> dict[str, Any]:
            return peers.post_to_member(member, path, own.body, own.signature)

        for member, answer in peers.together(untold, post):
            if isinstance(answer, TransportError):
                self._node.agenda.again()
                reason = {"member": member, "slot": slot, "reason": str(answer)}
                _LOGGER.info("peer not told", extra=reason)
                continue
            self._store.keep_told(round_.opening, slot, member)

    def ask_all(self, round_: RoundView, slot: int) -> None:
        """Ask peers for their own messages in a slot that we lack."""
        lacking = [
            (seat, member)
            for seat, member in self.peers(round_)
            if self.first(round_, slot, seat) is None
        ]

        def request(peer: tuple[int, Address]) -> bytes:
            return self._request(round_, peer[1], slot, peer[0])

        for (seat, _), answer in self._node.peers.together(lacking, request):
            if not isinstance(answer, TransportError):
                self._keep(round_, slot, seat, answer)

    def ask_both(self, round_: RoundView, slot: int, wanted: Bound) -> None:
        """Ask both peers for the messages of seats that pass their tests, whoever said them."""
        asked = [(seat, member) for seat in wanted for _, member in self.peers(round_)]

        def request(pair: tuple[int, Address]) -> bytes:
            return self._request(round_, pair[1], slot, pair[0])

        for (seat, _), answer in self._node.peers.together(asked, request):
            if not isinstance(answer, TransportError):
                self._keep(round_, slot, seat, answer, wanted[seat])

    def ask(
        self, round_: RoundView, member: Address, slot: int, seat: int, content_hash: bytes
    ) -> Signed | None:
        """Return the message of a seat with this hash, from our store or from a member."""
        author = self.seats(round_)[seat]
        known = self._store.message(round_.opening, slot, author, content_hash)
        if known is None:
            with contextlib.suppress(TransportError):
                answer = self._request(round_, member, slot, seat, content_hash)
                self._keep(round_, slot, seat, answer)
            known = self._store.message(round_.opening, slot, author, content_hash)
        return known

    def _request(
        self,
        round_: RoundView,
        member: Address,
        slot: int,
        seat: int,
        content_hash: bytes | None = None,
    ) -> bytes:
        path = f"/rounds/{round_.id}/messages/{slot}/{seat}"
        if content_hash is not None:
            path += f"/{tohex(content_hash)}"
        return self._node.peers.ask_member(member, path, 4 * self._most_bytes)

    def _keep(
        self,
        round_: RoundView,
        slot: int,
        seat: int,
        answer: bytes,
        is_wanted: Callable[[bytes], bool] | None = None,
    ) -> None:
        """Store the message in a peer's answer, if it is one.

        One that is not wanted is evidence: a liar may sign as many as it likes, and few are kept.
        """
        with contextlib.suppress(TransportError):
            found = object_in(answer)
            message = Signed(
                bytes_field(found, "body"), hex_field(found, "signature", SIGNATURE_BYTES)
            )
            if not self._is_signed(round_, slot, seat, message):
                return
            has_room = len(self.kept(round_, slot, seat)) < MOST_IN_SLOT
            if is_wanted is None or is_wanted(message.body) or has_room:
                author = self.seats(round_)[seat]
                self._store.keep_message(round_.opening, slot, author, message)

    # --- endpoints

    def take(self, request: Request) -> Response:
        """Store a peer's message that is for all members."""
        self._require_for_all(request)
        return self.take_any(request)

    def take_any(self, request: Request) -> Response:
        """Store a peer's message, also one that is for us alone."""
        round_, slot, seat = self._place(request)
        if slot > self._last_slot(round_):
            raise Refusal(HTTPStatus.TOO_EARLY, f"no session of this round has slot {slot} yet")
        message = Signed(request.body, signature_in(request))
        if not self._is_signed(round_, slot, seat, message):
            raise Refusal(
                HTTPStatus.UNAUTHORIZED,
                f"the message is not signed by seat {seat} for opening {tohex(round_.opening)}",
            )
        if len(self.kept(round_, slot, seat)) < MOST_IN_SLOT:
            author = self.seats(round_)[seat]
            self._store.keep_message(round_.opening, slot, author, message)
        self._node.wake()
        return Response.json({"stored": True})

    def serve_heard(self, request: Request) -> Response:
        """Serve the message of a seat in a slot that we heard, or before our echo the first one."""
        self._require_for_all(request)
        round_, slot, seat = self._place(request)
        return _response(self._heard(round_, slot, seat) or self.first(round_, slot, seat))

    def _heard(self, round_: RoundView, slot: int, seat: int) -> Signed | None:
        """The message that our echo names, if it is made: in a bound slot not always the first."""
        echo = None if is_echo(slot) else self.own(round_, echo_of(slot))
        heard = Echo.decode(echo.body).of_author(seat) if echo is not None else None
        if heard is None:
            return None
        return self._store.message(round_.opening, slot, self.seats(round_)[seat], heard)

    def serve(self, request: Request) -> Response:
        """Serve a message that we heard, as its member signed it."""
        self._require_for_all(request)
        round_, slot, seat = self._place(request)
        try:
            content_hash = unhex(request.parts["hash"])
        except ValueError:
            content_hash = b""
        if len(content_hash) != _HASH_BYTES:
            raise Refusal(HTTPStatus.NOT_FOUND, "no message has this hash")
        author = self.seats(round_)[seat]
        return _response(self._store.message(round_.opening, slot, author, content_hash))

    def _require_for_all(self, request: Request) -> None:
        """Refuse slots of hand-overs: whoever reads the keys in these opens components."""
        slot = slot_in(request)
        if not is_known(slot) or is_hand_over(slot):
            raise Refusal(HTTPStatus.NOT_FOUND, f"slot {slot} has no message for all members")

    def _is_signed(self, round_: RoundView, slot: int, seat: int, message: Signed) -> bool:
        statement = self.statement(round_, slot, message.body)
        signer = signer_of(statement, self._node.job.domain, message.signature)
        return signer == self.seats(round_)[seat]

    def _last_slot(self, round_: RoundView) -> int:
        """The last slot that a session of a round can have, also if a peer sees a later block."""
        moment = self._node.moment
        attempt = attempt_at(self._node, round_, moment.head if moment else 0)
        return SLOTS_PER_ATTEMPT * (attempt + 2)

    def _place(self, request: Request) -> tuple[RoundView, int, int]:
        """The round with the seats that speak in the slot, the slot, and the seat."""
        slot = slot_in(request)
        return as_said(self._node, round_in(self._node, request), slot), slot, seat_in(request)

    def statement(self, round_: RoundView, slot: int, body: bytes) -> MemberMessage:
        """The statement by which a member says something in a slot."""
        return MemberMessage(
            self._node.job.id, round_.number, round_.opening, slot, keccak256(body)
        )


def _response(message: Signed | None) -> Response:
    if message is None:
        raise Refusal(HTTPStatus.NOT_FOUND, "this message is not here yet")
    return Response.json({"body": tohex(message.body), "signature": tohex(message.signature)})
