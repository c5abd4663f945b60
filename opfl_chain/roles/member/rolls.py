"""The roll of a round: who is in it, agreed among the members and put on chain.

Each member lists the contributions that it has. Who is in two lists is a candidate; members fetch
its bundle from each other, open their parts, and drop it if one shows that its part does not open.
"""

from __future__ import annotations

import logging
from typing import Final

from opfl_chain.chain.keys import signer_of
from opfl_chain.chain.rpc import tohex
from opfl_chain.protocol.echo import Common, Slot, readable
from opfl_chain.protocol.errors import DoesNotOpen
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.protocol.roll import Complaints, Listed, Roll, RollEntry, candidates, exclude
from opfl_chain.protocol.sealing import SealingKey
from opfl_chain.protocol.signatures import SIGNATURE_BYTES
from opfl_chain.protocol.unsealing import complain, complaint_stands, open_contribution
from opfl_chain.roles.member.contributions import Contributions
from opfl_chain.roles.member.intake import Intake
from opfl_chain.roles.member.messages import Messages
from opfl_chain.roles.member.steps import StepEnds, Steps, parts_of
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.peers import hex_field
from opfl_chain.roles.round_driver import place_of, turn_of
from opfl_chain.roles.view.records import ClientView, RoundView
from opfl_chain.transport.errors import TransportError

PARTS: Final = 5
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
        contributions: Contributions,
        sealing_key: SealingKey,
    ) -> None:
        self._node = node
        self._store = store
        self._messages = messages
        self._steps = steps
        self._intake = intake
        self._contributions = contributions
        self._sealing_key = sealing_key
        self._agreed_at: dict[bytes, int] = {}

    def refusal(self, round_: RoundView, client: Address) -> str | None:
        """Say why no contribution of a client is taken, or None."""
        if client not in {each.address for each in self._eligible(round_)}:
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
        if roll is None:
            return
        # Whoever is first in this round commits at once, the others if it does not.
        place = place_of(self._messages.seat(round_), round_.number)
        since = self._agreed_at.setdefault(round_.opening, now.head)
        if now.has_come(turn_of(place, since)):
            self._commit(round_, roll)

    def agreed(self, round_: RoundView) -> Roll | None:
        """The roll that members agreed on, if they did and anybody is on it."""
        entries = self._store.roll(round_.opening)
        public = self._node.job.terms.public_roll
        return Roll.of(entries, is_public=public) if entries else None

    def _all_delivered(self, round_: RoundView) -> bool:
        if self._messages.own(round_, Slot.LIST) is not None:
            return True
        delivered = self._intake.hashes(round_)
        return all(each.address in delivered for each in self._eligible(round_))

    def _agree(self, round_: RoundView, now: Moment) -> Roll | None:
        ends = parts_of(round_.schedule.deliver, round_.schedule.roll, PARTS)
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
            lambda: self._complaints(round_, named, self._read(lists)).encode(),
        )
        if told is None:
            return None
        left = exclude(named, self._standing(round_, named, told))
        entries = self._entries(round_, left)
        if not entries:
            return None
        self._store.keep_roll(round_.opening, entries)
        return self.agreed(round_)

    def _eligible(self, round_: RoundView) -> list[ClientView]:
        return self._node.view.eligible(round_, self._contributions.on_roll)

    # --- lists

    def _list(self, round_: RoundView) -> bytes:
        """The contributions that we have, the smallest hash of each client."""
        indices = {each.address: each.index for each in self._eligible(round_)}
        return Listed(
            {
                indices[client]: hashes[0]
                for client, hashes in self._intake.hashes(round_).items()
                if client in indices
            }
        ).encode()

    def _read(self, lists: Common) -> dict[int, Listed]:
        most = len(self._node.view.clients())
        return readable(lists.values, lambda _, body: Listed.decode(body, most))

    def _candidates(self, round_: RoundView, lists: Common) -> dict[ClientIndex, bytes]:
        """Clients that two lists name, with the content hash that counts."""
        eligible = {each.index for each in self._eligible(round_)}
        named = candidates(self._read(lists).values())
        return {client: each for client, each in named.items() if client in eligible}

    # --- complaints

    def _complaints(
        self, round_: RoundView, named: dict[ClientIndex, bytes], lists: dict[int, Listed]
    ) -> Complaints:
        """Show which candidates do not open for us."""
        seats, filed = self._messages.seats(round_), {}
        for client, content_hash in named.items():
            address = self._address(client)
            tellers = [
                seats[seat]
                for seat, listed in lists.items()
                if listed.hashes.get(client) == content_hash
            ]
            self._intake.fetch(round_, address, content_hash, tellers)
            bundle = self._intake.bundle(round_, address, content_hash)
            if bundle is None:
                continue
            seat, context = self._messages.seat(round_), self._intake.context(round_, address)
            expected = self._intake.expected(round_)
            try:
                open_contribution(bundle, seat, self._sealing_key, context, expected)
            except DoesNotOpen as error:
                reason = {"client": client, "reason": str(error)}
                _LOGGER.info("contribution does not open", extra=reason)
                filed[client] = content_hash, complain(bundle, seat, self._sealing_key, context)
        return Complaints(filed)

    def _standing(
        self, round_: RoundView, named: dict[ClientIndex, bytes], told: Common
    ) -> set[tuple[ClientIndex, bytes]]:
        """Candidates about which someone has shown that its part does not open."""
        found, seats, most = set(), self._messages.seats(round_), len(named)
        said = readable(told.values, lambda seat, body: Complaints.decode(body, seat, most))
        for seat, complaints in said.items():
            key = self._node.view.sealing_key(seats[seat]) or b""
            for client, (content_hash, complaint) in complaints.filed.items():
                if named.get(client) != content_hash:
                    continue
                address = self._address(client)
                bundle = self._intake.bundle(round_, address, content_hash)
                context = self._intake.context(round_, address)
                expected = self._intake.expected(round_)
                if bundle and complaint_stands(bundle, key, complaint, context, expected):
                    found.add((client, content_hash))
        return found

    # --- the roll

    def _entries(self, round_: RoundView, left: dict[ClientIndex, bytes]) -> list[RollEntry] | None:
        """Return the entries of the roll, or None while a bundle on it is missing here."""
        entries = []
        for client, content_hash in left.items():
            address = self._address(client)
            peers = [member for _, member in self._messages.peers(round_)]
            self._intake.fetch(round_, address, content_hash, peers)
            bundle = self._intake.bundle(round_, address, content_hash)
            if bundle is None:
                self._node.agenda.again()
                return None
            entries.append(RollEntry(client, address, bundle.commitment, content_hash))
        return entries

    def _commit(self, round_: RoundView, roll: Roll) -> None:
        """Put the roll on chain with our signature and another one."""
        statement = roll.statement(self._node.job.id, round_.number, round_.opening)
        signatures, peers = [self._node.sign(statement)], self._node.peers
        others = [member for _, member in self._messages.peers(round_)]

        def ask(member: Address) -> bytes:
            answer = peers.ask_member_json(member, f"/rounds/{round_.id}/roll")
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
        call = self._node.job.contracts.rounds.commit_roll(
            round_.id, roll.root, roll.count, roll.pairs, tuple(signatures[:2])
        )
        self._node.send(call, f"roll {round_.number} {tohex(round_.opening)}")

    def _address(self, client: ClientIndex) -> Address:
        found = {each.index: each.address for each in self._node.view.clients().values()}
        return found[client]
