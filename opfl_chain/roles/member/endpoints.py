"""HTTPS endpoints at which a member says what it found and signs it. All input is checked."""

from __future__ import annotations

from http import HTTPStatus

import numpy as np

from opfl_chain.chain.bindings.types import MemberFault
from opfl_chain.chain.rpc import checksum, tohex
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.statements import RoundResult, Statement
from opfl_chain.roles.content import content_routes
from opfl_chain.roles.member.charges import Charges
from opfl_chain.roles.member.requests import round_in
from opfl_chain.roles.member.rolls import RollDuty
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.member.sums import MemberSums
from opfl_chain.roles.model_store import Models
from opfl_chain.roles.node import Node
from opfl_chain.roles.view.records import RoundView
from opfl_chain.transport.routes import Refusal, Request, Response, Route


class MemberEndpoints:
    def __init__(
        self,
        node: Node,
        store: MemberStore,
        models: Models,
        rolls: RollDuty,
        sums: MemberSums,
        charges: Charges,
    ) -> None:
        self._node = node
        self._store = store
        self._models = models
        self._rolls = rolls
        self._sums = sums
        self._charges = charges

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/rounds/{round}/roll", self.roll),
            Route("GET", "/rounds/{round}/partial", self.partial),
            Route("GET", "/rounds/{round}/sum", self.sum),
            Route("GET", "/rounds/{round}/result", self.result),
            Route("GET", "/rounds/{round}/outcomes/{client}", self.outcome),
            Route("GET", "/rounds/{round}/faults/{member}/{fault}", self.fault),
            *content_routes(self._models),
        ]

    def roll(self, request: Request) -> Response:
        """Sign the roll that we agreed on."""
        round_ = self._round(request)
        if (roll := self._rolls.agreed(round_)) is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "this member has no roll of this round yet")
        statement = roll.statement(self._node.job.id, round_.number, round_.opening)
        return self._signed(statement, root=tohex(roll.root))

    def partial(self, request: Request) -> Response:
        kept = self._store.partial(self._round(request).opening)
        if kept is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "this member has not signed this round yet")
        return Response.json({"signature": tohex(kept[1])})

    def sum(self, request: Request) -> Response:
        """Serve our components of the sum of all that passed: they reveal the sum alone."""
        if (held := self._sums.held(self._round(request))) is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "no sum of this round is available")
        return Response.binary(
            b"".join(np.ascontiguousarray(part, "<u8").tobytes() for part in held)
        )

    def result(self, request: Request) -> Response:
        round_ = self._round(request)
        if (result := self._store.result(round_.opening)) is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "this member has no result of this round yet")
        verdict, aggregate, model = result
        statement = RoundResult(
            self._node.job.id, round_.number, round_.opening, verdict, aggregate, model
        )
        return self._signed(statement, aggregate_hash=tohex(aggregate), model_hash=tohex(model))

    def outcome(self, request: Request) -> Response:
        """Sign how the audit of a client ended, if we found it."""
        round_, client = self._round(request), _address(request, "client")
        if (outcome := self._store.outcome(round_.opening, client)) is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "this member has not decided that audit")
        statement = self._charges.outcome_statement(round_, client, outcome)
        return self._signed(statement, outcome=outcome.name)

    def fault(self, request: Request) -> Response:
        """Sign a fault of another member, if we saw it."""
        round_, member = self._round(request), _address(request, "member")
        known = {f"{fault}" for each, fault in self._store.faults(round_.opening) if each == member}
        if (text := request.parts["fault"]) not in known:
            raise Refusal(HTTPStatus.NOT_FOUND, "this member has not seen this fault")
        return self._signed(self._charges.fault_statement(round_, member, MemberFault(int(text))))

    def _signed(self, statement: Statement, **fields: str) -> Response:
        return Response.json({**fields, "signature": tohex(self._node.sign(statement))})

    def _round(self, request: Request) -> RoundView:
        return round_in(self._node, request)


def _address(request: Request, name: str) -> Address:
    try:
        return checksum(request.parts[name])
    except ValueError as error:
        raise Refusal(HTTPStatus.NOT_FOUND, f"the {name} is not an address") from error
