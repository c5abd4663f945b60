"""The roll of a round: who is in it, agreed among the members and put on chain.

Each member lists the contributions that it has. Who is in two lists is a candidate; members fetch
its bundle from each other, open their parts, and drop it if one shows that its part does not open.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from opfl_chain.chain.keys import signer_of
from opfl_chain.chain.rpc import tohex
from opfl_chain.protocol.bundle import (
    DoesNotOpen,
    complain,
    complaint_stands,
    open_contribution,
)
from opfl_chain.protocol.echo import Common, Slot
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.protocol.roll import (
    ClientComplaint,
    Roll,
    RollEntry,
    candidates,
    decode_complaints,
    decode_list,
    encode_complaints,
    encode_list,
)
from opfl_chain.protocol.sealing import SealingKey
from opfl_chain.protocol.signatures import SIGNATURE_BYTES
from opfl_chain.protocol.statements import Roll as RollStatement
from opfl_chain.roles.member.intake import Intake
from opfl_chain.roles.member.messages import Messages
from opfl_chain.roles.member.steps import StepEnds, Steps, parts_of
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.peers import hex_field
from opfl_chain.roles.round_driver import place_of, turn_of
from opfl_chain.roles.view.view import RoundView
from opfl_chain.transport.errors import TransportError

_PARTS = 5
"""Parts of the roll phase: lists, their echo, complaints, their echo, and the transaction."""

_LOGGER = logging.getLogger("opfl.committee")


class RollDuty:
    """One member's part in agreeing on rolls."""

    def __init__(
        self,
        node: Node,
        store: MemberStore,
        messages: Messages,
        steps: Steps,
        intake: Intake,
        sealing_key: SealingKey,
    ) -> None:
        self._node = node
        self._store = store
        self._messages = messages
        self._steps = steps
        self._intake = intake
        self._sealing_key = sealing_key

    def refusal(self, round_: RoundView, client: Address) -> str | None:
        """Say why no contribution of a client is taken, or None."""
        if client not in {each.address for each in self._node.view.eligible(round_)}:
            return f"{client} was not active when round {round_.number} opened"
        if round_.roll is not None or self._messages.own(round_, Slot.LIST) is not None:
            return f"contributions to round {round_.number} were accepted until its list was made"
        return None

    def act(self, round_: RoundView, now: Moment) -> None:
        """List, complain, agree, sign and commit, as far as the peers allow."""
        deadline = round_.schedule.roll
        if round_.roll is not None or now.has_come(deadline):
            return
        if not (self._all_delivered(round_) or now.has_come(round_.schedule.deliver)):
            return
        roll = self.agreed(round_) or self._agree(round_, now)
        if roll is None or not roll.entries:
            return
        place = place_of(self._messages.seat(round_), round_.number)
        since = self._node.moment.head if self._node.moment else round_.schedule.deliver
        del since
        if now.has_come(turn_of(place, round_.opened_at)):
            self._commit(round_, roll)

    def agreed(self, round_: RoundView) -> Roll | None:
        """The roll that members agreed on, if they did."""
        kept = self._store.roll(round_.opening)
        return Roll.decode(kept) if kept is not None else None

    def statement(self, round_: RoundView, roll: Roll) -> RollStatement:
        public = self._node.job.terms.public_roll
        return RollStatement(
            self._node.job.id,
            round_.number,
            round_.opening,
            roll.root,
            roll.count,
            roll.pairs_hash if public else Roll.NO_PAIRS_HASH,
        )

    def _all_delivered(self, round_: RoundView) -> bool:
        if self._messages.own(round_, Slot.LIST) is not None:
            return True
        delivered = self._intake.hashes(round_)
        return all(each.address in delivered for each in self._node.view.eligible(round_))

    def _agree(self, round_: RoundView, now: Moment) -> Roll | None:
        ends = parts_of(round_.schedule.deliver, round_.schedule.roll, _PARTS)
        lists = self._steps.take(
            round_, Slot.LIST, StepEnds(*ends[0:2]), now, lambda: self._list(round_)
        )
        if lists is None:
            return None
        named = self._candidates(round_, lists)
        told = self._steps.take(
            round_,
            Slot.COMPLAINTS,
            StepEnds(*ends[2:4]),
            now,
            lambda: encode_complaints(self._complaints(round_, named, lists)),
        )
        if told is None:
            return None
        roll = self._roll(round_, named, self._standing(round_, named, told))
        if roll is not None:
            self._store.keep_roll(round_.opening, roll.encode())
        return roll

    # --- lists

    def _list(self, round_: RoundView) -> bytes:
        """The contributions that we have, the smallest hash of each client."""
        view = self._node.view
        indices = {each.address: each.index for each in view.eligible(round_)}
        return encode_list(
            {
                indices[client]: hashes[0]
                for client, hashes in self._intake.hashes(round_).items()
                if client in indices
            }
        )

    def _candidates(self, round_: RoundView, lists: Common) -> dict[ClientIndex, bytes]:
        """Clients that two lists name, with the content hash that counts."""
        eligible = {each.index for each in self._node.view.eligible(round_)}
        read = []
        for body in lists.values.values():
            try:
                read.append(decode_list(body) if body is not None else {})
            except ProtocolError as error:
                _LOGGER.warning("list refused", extra={"reason": str(error)})
                read.append({})
        named = candidates(read)
        return {client: each for client, each in named.items() if client in eligible}

    # --- complaints

    def _complaints(
        self, round_: RoundView, named: dict[ClientIndex, bytes], lists: Common
    ) -> list[ClientComplaint]:
        """Show which candidates do not open for us. What nobody gives us is not on the roll."""
        seats, found = self._messages.seats(round_), []
        for client, content_hash in named.items():
            address = self._address(client)
            tellers = [
                seats[seat]
                for seat, body in lists.values.items()
                if body is not None and decode_list(body).get(client) == content_hash
            ]
            self._intake.fetch(round_, address, content_hash, tellers)
            bundle = self._intake.bundle(round_, address, content_hash)
            if bundle is None:
                continue
            seat, context = self._messages.seat(round_), self._intake.context(round_, address)
            try:
                open_contribution(bundle, seat, self._sealing_key, context, self._expected(round_))
            except DoesNotOpen as error:
                _LOGGER.info("contribution does not open", extra={"client": client, "why": str(error)})
                complaint = complain(bundle, seat, self._sealing_key, context)
                found.append(ClientComplaint(client, content_hash, complaint))
        return found

    def _standing(
        self, round_: RoundView, named: dict[ClientIndex, bytes], told: Common
    ) -> set[ClientIndex]:
        """Candidates about which someone has shown that its part does not open."""
        excluded = set()
        seats = self._messages.seats(round_)
        for seat, body in told.values.items():
            key = self._node.view.sealing_key(seats[seat])
            try:
                complaints = decode_complaints(body) if body is not None else []
            except ProtocolError as error:
                _LOGGER.warning("complaints refused", extra={"seat": seat, "reason": str(error)})
                continue
            for each in complaints:
                address = self._address(each.client)
                bundle = self._intake.bundle(round_, address, each.content_hash)
                if named.get(each.client) != each.content_hash or bundle is None or key is None:
                    continue
                context = self._intake.context(round_, address)
                expected = self._expected(round_)
                if complaint_stands(bundle, seat, key, each.complaint, context, expected):
                    excluded.add(each.client)
        return excluded

    # --- the roll

    def _roll(
        self, round_: RoundView, named: dict[ClientIndex, bytes], excluded: set[ClientIndex]
    ) -> Roll | None:
        """Return the roll, or None while a bundle on it is missing here."""
        entries = []
        for client, content_hash in sorted(named.items()):
            if client in excluded:
                continue
            address = self._address(client)
            bundle = self._intake.bundle(round_, address, content_hash)
            if bundle is None:
                _LOGGER.warning("bundle on the roll is missing", extra={"client": client})
                self._intake.fetch(
                    round_, address, content_hash, [m for _, m in self._messages.peers(round_)]
                )
                self._node.agenda.again()
                return None
            entries.append(RollEntry(client, address, bundle.commitment, content_hash))
        return Roll(tuple(entries))

    def _commit(self, round_: RoundView, roll: Roll) -> None:
        """Put the roll on chain with our signature and another one."""
        statement = self.statement(round_, roll)
        signatures = [self._node.sign(statement)]
        for _, member in self._messages.peers(round_):
            try:
                answer = self._node.peers.ask_member_json(member, f"/rounds/{round_.id}/roll")
                signature = hex_field(answer, "signature", SIGNATURE_BYTES)
            except TransportError:
                continue
            if signer_of(statement, self._node.job.domain, signature) == member:
                signatures.append(signature)
        if len(signatures) < 2:
            self._node.agenda.again()
            return
        public = self._node.job.terms.public_roll
        call = self._node.job.contracts.rounds.commit_roll(
            round_.id, roll.root, roll.count, roll.pairs if public else b"", tuple(signatures[:2])
        )
        self._node.send(call, f"roll {round_.number} {tohex(round_.opening)}")

    def _expected(self, round_: RoundView):  # type: ignore[no-untyped-def]
        return self._intake.expected(round_)

    def _address(self, client: ClientIndex) -> Address:
        return self._node.view.client_at(client).address
