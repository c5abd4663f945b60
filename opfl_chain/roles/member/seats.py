"""Seats of members at fault, and of suspects, given to standbys with two seats' signatures."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from opfl_chain.chain.bindings.types import MemberFault
from opfl_chain.chain.keys import signer_of
from opfl_chain.chain.rpc import tohex
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.seats import due_change
from opfl_chain.protocol.signatures import SIGNATURE_BYTES
from opfl_chain.protocol.statements import SeatChange
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.peers import hex_field
from opfl_chain.roles.round_driver import turn_of
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.routes import Refusal, Request, Response, Route

GRAVE: Final = frozenset(
    {
        MemberFault.ABSENCE,
        MemberFault.DISSENT,
        MemberFault.WITHHELD,
        MemberFault.FALSEHOOD,
        MemberFault.EQUIVOCATION,
    }
)
"""Faults that cost the seat. Silence may be a transaction that came too late."""


class SeatDuty:
    """One member's part in changes of seats."""

    def __init__(self, node: Node, store: MemberStore) -> None:
        self._node = node
        self._store = store
        self._due_since: dict[int, int] = {}

    def routes(self) -> list[Route]:
        return [Route("GET", "/seats/{epoch}", self.serve)]

    def act(self, now: Moment) -> None:
        """Have the change that is due executed, if we have a seat.

        After the last round too, while audits are undecided: deposits and stakes wait for them, and
        they may wait for the standby.
        """
        view, seats = self._node.view, self._node.view.seats()
        if self._node.address not in seats or (view.is_closed and not view.undecided()):
            return
        statement = self._statement()
        if statement is None:
            return
        since = self._due_since.setdefault(statement.epoch, now.head)
        if not now.has_come(turn_of(seats.index(self._node.address), since)):
            return
        signatures, peers = [self._node.sign(statement)], self._node.peers
        others = [member for member in seats if member != self._node.address]

        def ask(member: Address) -> bytes:
            answer = peers.ask_member_json(member, f"/seats/{statement.epoch}")
            return hex_field(answer, "signature", SIGNATURE_BYTES)

        for member, signature in peers.together(others, ask):
            if isinstance(signature, TransportError):
                continue
            if signer_of(statement, self._node.job.domain, signature) == member:
                signatures.append(signature)
                break
        if len(signatures) < 2:
            self._node.agenda.again()
            return
        call = self._node.job.contracts.jobs.change_seat(
            statement.job, statement.seat, statement.standby, tuple(signatures[:2])
        )
        self._node.send(call, f"seat {statement.epoch} {statement.seat}")

    def serve(self, request: Request) -> Response:
        """Sign the change that is due, if it is the one that is asked for."""
        statement = self._statement()
        if statement is None or request.parts["epoch"] != str(statement.epoch):
            raise Refusal(HTTPStatus.NOT_FOUND, "this change of seats is not due")
        return Response.json({"signature": tohex(self._node.sign(statement))})

    def _statement(self) -> SeatChange | None:
        view = self._node.view
        at_fault = {each.member for each in view.penalties() if each.fault in GRAVE}
        seats = view.seats()
        failed = self._store.has_failed_meeting(view.epoch, seats)
        change = due_change(seats, view.bench(), at_fault, view.seat_changes(), failed)
        if change is None:
            return None
        return SeatChange(self._node.job.id, view.epoch, change.seat, change.standby)
