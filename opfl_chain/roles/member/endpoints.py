"""HTTPS endpoints of a member. All input is checked before it is used."""

from __future__ import annotations

from http import HTTPStatus

import numpy as np

from opfl_chain.chain.keys import signer_of
from opfl_chain.chain.rpc import checksum, tohex
from opfl_chain.protocol.delivery import Delivery, Expected, decode_delivery, largest_delivery
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.statements import Acquittal, DeliveryEnvelope, DeliveryReceipt, RoundResult
from opfl_chain.roles.claims import Claims
from opfl_chain.roles.content import content_routes
from opfl_chain.roles.member.requests import round_in, signature_in
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.member.sums import MemberSums
from opfl_chain.roles.model_store import Models
from opfl_chain.roles.node import Node
from opfl_chain.roles.view.view import RoundView
from opfl_chain.transport.routes import Refusal, Request, Response, Route


class MemberEndpoints:
    def __init__(
        self,
        node: Node,
        store: MemberStore,
        claims: Claims,
        models: Models,
        expected: Expected,
        sums: MemberSums,
    ) -> None:
        self._node = node
        self._store = store
        self._claims = claims
        self._models = models
        self._expected = expected
        self._sums = sums

    def routes(self) -> list[Route]:
        return [
            Route(
                "POST",
                "/rounds/{round}/deliveries/{client}",
                self.take_delivery,
                max_body_bytes=largest_delivery(self._expected),
                signed=True,
            ),
            Route("GET", "/rounds/{round}/partial", self.partial),
            Route("GET", "/rounds/{round}/sum", self.sum),
            Route("GET", "/rounds/{round}/result", self.result),
            Route("GET", "/rounds/{round}/acquittals/{client}", self.acquittal),
            *content_routes(self._models, self._claims),
        ]

    def take_delivery(self, request: Request) -> Response:
        """Store a client's shares, then sign a receipt."""
        node, round_, client = self._node, self._round(request), self._client(request)
        moment = node.moment
        if moment is None or not round_.settled(moment.seen):
            raise Refusal(HTTPStatus.TOO_EARLY, "it is not yet known who is audited: try again")
        self._require_sender(request, round_, client)
        number, body = round_.number, request.body
        kept, audited = self._store.delivery(number, client), node.view.is_audited(round_, client)
        self._require_complete(self._decoded(body), audited)
        if kept != body:
            if moment.head > round_.schedule.deliver or round_.verdict_hash:
                until = round_.schedule.deliver
                raise Refusal(HTTPStatus.GONE, f"deliveries ended at block {until}")
            if kept is not None and (self._decoded(kept).training_input is not None) != audited:
                # A reorganisation changed the seed, and with it who is audited.
                stored = self._store.replace_delivery(number, client, kept, body)
            else:
                stored = self._store.keep_delivery(number, client, body)
            if not stored:
                raise Refusal(
                    HTTPStatus.CONFLICT, "another delivery of this client is already stored"
                )
        if self._store.count_deliveries(number) >= node.view.count_commitments(round_.id):
            node.wake()
        receipt = DeliveryReceipt(node.job.id, number, client, audited)
        return Response.json({"signature": tohex(node.sign(receipt)), "audited": audited})

    def partial(self, request: Request) -> Response:
        kept = self._store.partial(self._round(request).number)
        if kept is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "this round is not signed yet")
        return Response.json({"signature": tohex(kept[1])})

    def sum(self, request: Request) -> Response:
        """Serve our components of the sum of all that passed: they reveal the sum alone."""
        round_ = self._round(request)
        if (held := self._sums.held(round_)) is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "no sum of this round is available")
        return Response.binary(
            b"".join(np.ascontiguousarray(part, "<u8").tobytes() for part in held)
        )

    def result(self, request: Request) -> Response:
        node, round_ = self._node, self._round(request)
        if (result := self._store.result(round_.number)) is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "this round has no result yet")
        verdict, aggregate, model = result
        statement = RoundResult(node.job.id, round_.number, verdict, aggregate, model)
        return Response.json(
            {
                "aggregate_hash": tohex(aggregate),
                "model_hash": tohex(model),
                "signature": tohex(node.sign(statement)),
            }
        )

    def acquittal(self, request: Request) -> Response:
        node, round_, client = self._node, self._round(request), self._client(request)
        if self._store.second_replay(round_.number, client) is not True:
            raise Refusal(HTTPStatus.NOT_FOUND, "this member has not acquitted the client")
        statement = Acquittal(node.job.id, round_.number, client)
        return Response.json({"signature": tohex(node.sign(statement))})

    def _require_sender(self, request: Request, round_: RoundView, client: Address) -> None:
        """Require that the client itself sent this delivery, and committed in the round."""
        node, digest = self._node, keccak256(request.body)
        envelope = DeliveryEnvelope(node.job.id, round_.number, client, node.address, digest)
        signature = signature_in(request)
        if signer_of(envelope, node.job.domain, signature) != client:
            raise Refusal(
                HTTPStatus.UNAUTHORIZED, "the envelope of this delivery is not signed by the client"
            )
        if not self._claims.has_committed(round_, client):
            if self._claims.lacks_batch(round_):
                raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "the batch is not here yet")
            raise Refusal(HTTPStatus.FORBIDDEN, f"{client} did not commit in this round")

    def _require_complete(self, delivery: Delivery, audited: bool) -> None:
        """Require input and advice exactly if audited: a receipt states that they are here."""
        expected = self._expected
        missing = []
        if audited and delivery.training_input is None:
            missing.append("input")
        if audited and expected.advice_words and delivery.advice is None:
            missing.append("advice")
        if audited and expected.proof and delivery.proof is None:
            missing.append("proof")
        if missing:
            raise Refusal(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"this contribution is audited, but its delivery has no {' and no '.join(missing)}",
            )
        if not audited and (delivery.training_input or delivery.advice or delivery.proof):
            raise Refusal(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "this contribution is not audited: do not send input or advice",
            )

    def _decoded(self, body: bytes) -> Delivery:
        try:
            return decode_delivery(body, self._expected)
        except ProtocolError as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, str(error)) from error

    def _round(self, request: Request) -> RoundView:
        return round_in(self._node, request)

    def _client(self, request: Request) -> Address:
        try:
            client = checksum(request.parts["client"])
        except ValueError as error:
            raise Refusal(HTTPStatus.NOT_FOUND, "the client is not an address") from error
        if self._node.view.client(client) is None:
            raise Refusal(HTTPStatus.FORBIDDEN, f"{client} is not a client of this job")
        return client
