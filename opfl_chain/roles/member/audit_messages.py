"""The signed messages of an exchange on a round: sent, asked for, stored and served.

The first message of a member at each stage counts; it is stored before it is used or sent.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from opfl_chain.chain.keys import signer_of
from opfl_chain.chain.rpc import tohex
from opfl_chain.protocol.exchange import contradict
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.published_answers import STAGES, PublishedMessage, audit_statement
from opfl_chain.protocol.signatures import SIGNATURE_BYTES
from opfl_chain.protocol.statements import AuditMessage
from opfl_chain.roles.member.requests import round_in, signature_in
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.node import Node
from opfl_chain.roles.peers import bytes_field, hex_field, object_in
from opfl_chain.roles.view.view import RoundView
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.routes import Refusal, Request, Response, Route

MOST_MESSAGE_BYTES: Final = 1 << 22

_LOGGER = logging.getLogger("opfl.committee")


@dataclass(frozen=True)
class SignedMessage:
    """A message of an exchange, signed by its member."""

    body: bytes
    signature: bytes


class AuditMessages:
    """The messages that one member has. `told_two` is told of a member that signed two."""

    def __init__(
        self,
        node: Node,
        rank: int,
        store: MemberStore,
        told_two: Callable[[RoundView, int, str], None],
    ) -> None:
        self._node = node
        self._rank = rank
        self._store = store
        self._told_two = told_two

    def routes(self) -> list[Route]:
        return [
            Route(
                "POST",
                "/rounds/{round}/audit/{stage}/{rank}",
                self.take,
                max_body_bytes=MOST_MESSAGE_BYTES,
                signed=True,
            ),
            Route("GET", "/rounds/{round}/audit/{stage}", self.serve_own),
            Route("GET", "/rounds/{round}/audit", self.serve_all),
        ]

    def own(self, round_: RoundView, stage: str) -> SignedMessage | None:
        """Return our own message, if it is made."""
        kept = self._store.audit_message(round_.number, self._rank, stage)
        return SignedMessage(*kept) if kept else None

    def sign(self, round_: RoundView, stage: str, body: bytes) -> SignedMessage:
        """Sign a message. It is not stored yet."""
        return SignedMessage(body, self._node.sign(self._statement(round_, stage, body)))

    def of_all(self, round_: RoundView, stage: str, own: SignedMessage) -> dict[int, SignedMessage]:
        """Send our message to the peers that do not have it; return all that we have, by rank."""
        found = {self._rank: own}
        for rank, member in self._node.peers.others(self._node.address):
            kept = self._store.audit_message(round_.number, rank, stage)
            known = SignedMessage(*kept) if kept else self._ask(round_, rank, member, stage)
            if known is not None:
                found[rank] = known
            self._tell(round_, member, stage, own)
        return dict(sorted(found.items()))

    def _tell(self, round_: RoundView, member: Address, stage: str, own: SignedMessage) -> None:
        if self._store.has_told(round_.number, member, stage):
            return
        path = f"/rounds/{round_.id}/audit/{stage}/{self._rank}"
        try:
            self._node.peers.post_to_member(member, path, own.body, own.signature)
        except TransportError as error:
            self._node.agenda.again()
            reason = {"member": member, "stage": stage, "reason": str(error)}
            _LOGGER.info("peer not told", extra=reason)
            return
        self._store.keep_told(round_.number, member, stage)

    def _ask(
        self, round_: RoundView, rank: int, member: Address, stage: str
    ) -> SignedMessage | None:
        with contextlib.suppress(TransportError):
            path = f"/rounds/{round_.id}/audit/{stage}"
            found = object_in(self._node.peers.ask_member(member, path, 2 * MOST_MESSAGE_BYTES))
            body = bytes_field(found, "body")
            signature = hex_field(found, "signature", SIGNATURE_BYTES)
            if self._is_signed(round_, rank, stage, body, signature):
                self._store.keep_audit_message(round_.number, rank, stage, body, signature)
                return SignedMessage(body, signature)
        return None

    # --- endpoints

    def take(self, request: Request) -> Response:
        """Store a peer's message; the first one counts."""
        round_, stage, rank = round_in(self._node, request), _stage(request), self._peer(request)
        signature, body = signature_in(request), request.body
        if not self._is_signed(round_, rank, stage, body, signature):
            raise Refusal(HTTPStatus.UNAUTHORIZED, "the message is not signed by this member")
        if not self._store.keep_audit_message(round_.number, rank, stage, body, signature):
            kept = self._store.audit_message(round_.number, rank, stage)
            if kept is not None and contradict(kept[0], body):
                self._told_two(round_, rank, f"signed two different messages of stage {stage}")
            raise Refusal(HTTPStatus.CONFLICT, "another message of this member is already stored")
        self._node.wake()
        return Response.json({"stored": True})

    def serve_own(self, request: Request) -> Response:
        """Serve our own message, once it is made."""
        round_, stage = round_in(self._node, request), _stage(request)
        if (own := self.own(round_, stage)) is None:
            raise Refusal(HTTPStatus.NOT_FOUND, f"there is no {stage} of this round yet")
        return Response.json({"body": tohex(own.body), "signature": tohex(own.signature)})

    def serve_all(self, request: Request) -> Response:
        """Serve all messages of a round that has a verdict, for whoever checks it."""
        round_ = round_in(self._node, request)
        if self._store.judgement(round_.number) is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "this round has no verdict here yet")
        return Response.json({"messages": [each.document for each in self.published(round_)]})

    def published(self, round_: RoundView) -> list[PublishedMessage]:
        """Return all messages of a round, as they are published."""
        return [PublishedMessage(*row) for row in self._store.audit_messages(round_.number)]

    def _peer(self, request: Request) -> int:
        text = request.parts["rank"]
        if text not in {str(rank) for rank, _ in self._node.peers.others(self._node.address)}:
            raise Refusal(HTTPStatus.NOT_FOUND, f"no peer has rank {text!r:.40}")
        return int(text)

    def _is_signed(
        self, round_: RoundView, rank: int, stage: str, body: bytes, signature: bytes
    ) -> bool:
        job, statement = self._node.job, self._statement(round_, stage, body)
        return signer_of(statement, job.domain, signature) == job.members[rank]

    def _statement(self, round_: RoundView, stage: str, body: bytes) -> AuditMessage:
        return audit_statement(self._node.job.id, round_.number, stage, body)


def _stage(request: Request) -> str:
    stage = request.parts["stage"]
    if stage not in STAGES:
        raise Refusal(HTTPStatus.NOT_FOUND, f"an exchange has the stages {', '.join(STAGES)}")
    return stage
