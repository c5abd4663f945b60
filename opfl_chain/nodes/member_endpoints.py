"""What a member answers over HTTPS. Nothing here is believed before it is checked."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import numpy as np

from opfl_chain.chain.rpc import checksum, tohex, unhex
from opfl_chain.chain.statement_signatures import signer_of
from opfl_chain.nodes.chain_view import RoundView
from opfl_chain.nodes.content import content_routes
from opfl_chain.protocol.delivery import Delivery
from opfl_chain.protocol.delivery_message import decode_delivery, largest_delivery
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address, RoundId, job_and_number
from opfl_chain.protocol.statements import (
    Acquittal,
    DeliveryEnvelope,
    DeliveryReceipt,
    RoundResult,
)
from opfl_chain.transport.messages import Refusal, Request, Response
from opfl_chain.transport.routes import Route

if TYPE_CHECKING:
    from opfl_chain.nodes.member import Member


class MemberEndpoints:
    def __init__(self, member: Member) -> None:
        self._member = member

    def routes(self) -> list[Route]:
        member = self._member
        return [
            Route(
                "POST",
                "/rounds/{round}/deliveries/{client}",
                self.take_delivery,
                max_body_bytes=largest_delivery(member.judging.expected),
            ),
            Route("GET", "/rounds/{round}/partial", self.partial),
            Route("GET", "/rounds/{round}/sum", self.sum),
            Route("GET", "/rounds/{round}/result", self.result),
            Route("GET", "/rounds/{round}/acquittals/{client}", self.acquittal),
            *content_routes(member.models, member.claims),
        ]

    def take_delivery(self, request: Request) -> Response:
        """Store a client's shares, then sign that they are here."""
        member, round_, client = self._member, self._round(request), self._client(request)
        moment = member.moment
        if moment is None or not round_.settled(moment.seen):
            raise Refusal(HTTPStatus.TOO_EARLY, "it is not known yet who is audited: try again")
        envelope = DeliveryEnvelope(
            member.job.id, round_.number, client, member.address, keccak256(request.body)
        )
        signature = _hex(request.headers.get("opfl-signature", ""))
        if signer_of(envelope, member.job.domain, signature) != client:
            raise Refusal(
                HTTPStatus.UNAUTHORIZED, "the envelope of this delivery is not signed by the client"
            )
        if not member.claims.has_committed(round_, client):
            if member.claims.lacks_batch(round_):
                raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "the batch is not here yet")
            raise Refusal(HTTPStatus.FORBIDDEN, f"{client} did not commit in this round")
        kept = member.store.delivery(round_.number, client)
        audited = member.view.is_audited(round_, client)
        self._require_complete(self._decoded(request.body), audited)
        if kept != request.body:
            if moment.head > round_.schedule.deliver or round_.verdict_hash:
                until = round_.schedule.deliver
                raise Refusal(HTTPStatus.GONE, f"deliveries ended at block {until}")
            self._keep(round_, client, request.body, kept, audited)
        if member.store.count_deliveries(round_.number) >= member.view.count_commitments(round_.id):
            member.wake()
        receipt = DeliveryReceipt(member.job.id, round_.number, client, audited)
        return Response.json({"signature": tohex(member.sign(receipt)), "audited": audited})

    def partial(self, request: Request) -> Response:
        kept = self._member.store.partial(self._round(request).number)
        if kept is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "this round is not signed yet")
        return Response.json({"signature": tohex(kept[1])})

    def sum(self, request: Request) -> Response:
        """Our components of the sum of what passed: uniform but for the sum itself."""
        round_ = self._round(request)
        if (held := self._member.sums.held(round_)) is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "there is no sum of this round here")
        return Response.binary(
            b"".join(np.ascontiguousarray(part, "<u8").tobytes() for part in held)
        )

    def result(self, request: Request) -> Response:
        member, round_ = self._member, self._round(request)
        if (result := member.store.result(round_.number)) is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "this round has no result yet")
        verdict, aggregate, model = result
        statement = RoundResult(member.job.id, round_.number, verdict, aggregate, model)
        return Response.json(
            {
                "aggregate_hash": tohex(aggregate),
                "model_hash": tohex(model),
                "signature": tohex(member.sign(statement)),
            }
        )

    def acquittal(self, request: Request) -> Response:
        member, round_, client = self._member, self._round(request), self._client(request)
        if member.store.second_replay(round_.number, client) is not True:
            raise Refusal(HTTPStatus.NOT_FOUND, "this client was not acquitted here")
        statement = Acquittal(member.job.id, round_.number, client)
        return Response.json({"signature": tohex(member.sign(statement))})

    def _keep(
        self, round_: RoundView, client: Address, body: bytes, kept: bytes | None, audited: bool
    ) -> None:
        store = self._member.store
        if kept is not None and (self._decoded(kept).training_input is not None) != audited:
            # The chain was reorganised, and another seed says otherwise who is audited.
            stored = store.replace_delivery(round_.number, client, kept, body)
        else:
            stored = store.keep_delivery(round_.number, client, body)
        if not stored:
            raise Refusal(HTTPStatus.CONFLICT, "another delivery of this client is here already")

    def _require_complete(self, delivery: Delivery, audited: bool) -> None:
        """A receipt of an audited delivery says that the input is here too."""
        expected = self._member.judging.expected
        missing = []
        if audited and delivery.training_input is None:
            missing.append("input")
        if audited and expected.advice_words and delivery.advice is None:
            missing.append("advice")
        if missing:
            raise Refusal(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"this contribution is audited, and its delivery has no {' and no '.join(missing)}",
            )
        if not audited and (delivery.training_input or delivery.advice):
            raise Refusal(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "this contribution is not audited: keep input and advice to yourself",
            )

    def _decoded(self, body: bytes) -> Delivery:
        try:
            return decode_delivery(body, self._member.judging.expected)
        except ProtocolError as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, str(error)) from error

    def _round(self, request: Request) -> RoundView:
        text = request.parts["round"]
        if text.isascii() and text.isdecimal() and int(text) < 1 << 96:
            job, number = job_and_number(RoundId(int(text)))
            if job == self._member.job.id and (found := self._member.view.round(number)):
                return found
        raise Refusal(HTTPStatus.NOT_FOUND, f"no round {text!r:.40} is known here (yet)")

    def _client(self, request: Request) -> Address:
        try:
            client = checksum(request.parts["client"])
        except ValueError as error:
            raise Refusal(HTTPStatus.NOT_FOUND, "that is no address") from error
        if self._member.view.client(client) is None:
            raise Refusal(HTTPStatus.FORBIDDEN, f"{client} is no client of this job")
        return client


def _hex(text: str) -> bytes:
    try:
        return unhex(text)
    except ValueError:
        return b""
