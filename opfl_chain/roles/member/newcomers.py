"""A standby that took a seat takes part in hearings on rounds that began without it.

Each component has two holders, so the others can hand it everything that its seat held: the roll,
bundles, and the keys of its two components. So does who had the seat before, if it is there. All of
it is bound by the roll on chain. Who had another seat when the round opened is handed nothing: with
a third component it would see everything. Where members meet inside MPC they hand over no keys:
there they share what they hold anew.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.errors import MessageError, ProtocolError
from opfl_chain.protocol.handed_keys import (
    MOST_BYTES,
    HandedKey,
    decode_handed_keys,
    encode_handed_keys,
)
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.referee import MOST_COMPONENTS
from opfl_chain.protocol.roll import Listed, Roll, RollEntry
from opfl_chain.protocol.sealing import SealingKey
from opfl_chain.protocol.shares import held_indices
from opfl_chain.protocol.unsealing import body_key, is_body_key
from opfl_chain.roles.member.intake import Intake
from opfl_chain.roles.member.requests import round_in
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.node import Node
from opfl_chain.roles.view.records import RoundView
from opfl_chain.rules.registry import rule_of
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.routes import Refusal, Request, Response, Route

_LISTED_BYTES: Final = 64
"""At least what a client takes in a list, and its header."""

_LOGGER = logging.getLogger("opfl.committee")


class Newcomers:
    """Both sides of a hand-over: the giver, and the member that took a seat."""

    def __init__(
        self,
        node: Node,
        store: MemberStore,
        sealing_key: SealingKey,
        intakes: dict[BundleKind, Intake],
    ) -> None:
        self._node = node
        self._store = store
        self._sealing_key = sealing_key
        self._intakes = intakes

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/rounds/{round}/entries", self.serve_entries),
            Route("POST", "/rounds/{round}/keys", self.take_keys, max_body_bytes=MOST_BYTES),
        ]

    def is_newcomer(self, round_: RoundView, member: Address) -> bool:
        """Return whether a member had no seat when the round opened."""
        return member not in self._opened_with(round_)

    def hand_over(
        self, heard: RoundView, kind: BundleKind, client: Address, content: bytes
    ) -> None:
        """Hand our keys of a bundle to those who took a seat since it was sealed.

        We had a seat then, but need none now.
        """
        if rule_of(self._node.job.boundary).tolerance(self._node.job.boundary) is None:
            return
        opened = self._opened_with(heard)
        if self._node.address not in opened:
            return
        own = opened.index(self._node.address)
        for seat, member in enumerate(self._node.view.seats_of(heard)):
            shared = set(held_indices(seat)) & set(held_indices(own))
            known = self._store.has_handed_to(heard.opening, member, content)
            if member not in opened and not known:
                self._give(heard, member, kind, client, content, own, shared)

    def hand_over_seat(self, round_: RoundView, clients: Iterable[Address]) -> None:
        """Hand our keys to our successor, if we had a seat when a round opened and lost it."""
        seats, view = self._node.view.seats(), self._node.view
        opened = self._opened_with(round_)
        if self._node.address not in opened or self._node.address in seats:
            return
        heard = replace(round_, epoch=view.epoch)
        answers = self._intakes[BundleKind.ANSWER]
        contents = {each.address: each.content_hash for each in self._store.roll(round_.opening)}
        for client in clients:
            if client in contents:
                self.hand_over(heard, BundleKind.CONTRIBUTION, client, contents[client])
            answers.collect(heard, [client], list(seats))
            for content in answers.hashes(heard).get(client, []):
                self.hand_over(heard, BundleKind.ANSWER, client, content)

    def has_keys(self, heard: RoundView, contents: Iterable[bytes]) -> bool:
        """Return whether we can open bundles: they are sealed to us, or their keys are here."""
        return self.is_sealed_to_us(heard) or all(
            self.keys(heard, content) is not None for content in contents
        )

    def is_sealed_to_us(self, heard: RoundView) -> bool:
        """Return whether we had our seat when a round opened."""
        pairs = zip(self._node.view.seats_of(heard), self._opened_with(heard), strict=True)
        return (self._node.address, self._node.address) in pairs

    def _opened_with(self, round_: RoundView) -> tuple[Address, ...]:
        """The seats when a round opened, to which its bundles are sealed."""
        return tuple(self._node.view.seats_of(self._node.view.round(round_.number) or round_))

    def keys(self, heard: RoundView, content: bytes) -> tuple[bytes, bytes] | None:
        """The keys of the two components of our seat, once both were handed to us."""
        seat = self._node.view.seats_of(heard).index(self._node.address)
        first, second = (
            self._store.handed_key(heard.opening, content, k) for k in held_indices(seat)
        )
        return (first, second) if first is not None and second is not None else None

    def fetch_roll(self, round_: RoundView) -> None:
        """Have the entries of a roll that is on chain before we agreed on it ourselves.

        The root binds clients and content hashes, and a content hash its bundle's commitment: what
        a member says otherwise is not taken.
        """
        if round_.roll is None or self._store.roll(round_.opening):
            return
        most = _LISTED_BYTES * (1 + round_.roll.count)
        others = [member for member in self._node.view.roster() if member != self._node.address]
        for member in self._node.peers.likely(others):
            with contextlib.suppress(TransportError, ProtocolError):
                path = f"/rounds/{round_.id}/entries"
                body = self._node.peers.ask_member(member, path, most)
                listed = Listed.decode(body, round_.roll.count)
                entries = self._entries(round_, member, listed)
                if entries and Roll.of(entries).root == round_.roll.root:
                    self._store.keep_roll(round_.opening, entries)
                    return
        self._node.agenda.again()  # somebody who signed it has it

    def _entries(self, round_: RoundView, member: Address, listed: Listed) -> list[RollEntry]:
        """The entries of a list, with commitments from the bundles that a member has."""
        clients = {each.index: each.address for each in self._node.view.clients().values()}
        intake, entries = self._intakes[BundleKind.CONTRIBUTION], []
        for index, content in listed.hashes.items():
            if index not in clients:
                return []
            intake.fetch(round_, clients[index], content, [member])
            commitment = intake.required(round_, clients[index], content).commitment
            entries.append(RollEntry(index, clients[index], commitment, content))
        return entries

    def _give(
        self,
        heard: RoundView,
        member: Address,
        kind: BundleKind,
        client: Address,
        content: bytes,
        seat: int,
        components: Iterable[int],
    ) -> None:
        intake = self._intakes[kind]
        bundle = intake.required(heard, client, content)
        context, index = intake.context(heard, client), self._node.view.clients()[client].index
        # Who was a referee before it took the seat may have seen components of another one.
        shown = [
            k
            for k in components
            if self._store.may_show(heard.opening, member, client, k, MOST_COMPONENTS)
        ]
        if not shown:
            return
        keys = {k: body_key(bundle, k, seat, self._sealing_key, context) for k in shown}
        body = encode_handed_keys(
            HandedKey(kind, index, content, k, key) for k, key in keys.items()
        )
        try:
            path = f"/rounds/{heard.id}/keys"
            self._node.peers.post_to_member(member, path, body, b"", patient=True)
        except TransportError as error:
            self._node.agenda.again()
            _LOGGER.info("keys not handed over", extra={"member": member, "reason": str(error)})
            return
        self._store.keep_handed_to(heard.opening, member, content)

    # --- endpoints

    def serve_entries(self, request: Request) -> Response:
        """Serve the entries of a roll that is on chain."""
        round_ = round_in(self._node, request)
        entries = self._store.roll(round_.opening)
        if round_.roll is None or not entries:
            raise Refusal(HTTPStatus.NOT_FOUND, "this round has no roll here")
        return Response.binary(Listed({e.client: e.content_hash for e in entries}).encode())

    def take_keys(self, request: Request) -> Response:
        """Store keys of components that our seat has had since the round opened.

        Whoever sends them: a key counts if it opens the body to the leaf hash that was signed.
        """
        round_ = round_in(self._node, request)
        seats = self._node.view.seats()
        if self._node.address not in seats or not self.is_newcomer(round_, self._node.address):
            raise Refusal(HTTPStatus.FORBIDDEN, "this member took no seat after the round opened")
        try:
            keys = decode_handed_keys(request.body)
        except MessageError as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, str(error)) from None
        held = held_indices(seats.index(self._node.address))
        for each in keys:
            if each.component not in held or not self._opens(round_, each):
                raise Refusal(HTTPStatus.BAD_REQUEST, "a key opens no component of our seat")
            self._store.keep_handed_key(round_.opening, each.content, each.component, each.key)
        self._node.wake()
        return Response.json({"stored": True})

    def _opens(self, round_: RoundView, handed: HandedKey) -> bool:
        """Return whether a key is that of a component, as its client signed it."""
        clients = {each.index: each.address for each in self._node.view.clients().values()}
        if handed.client not in clients:
            return False
        intake, client = self._intakes[handed.kind], clients[handed.client]
        intake.fetch(round_, client, handed.content, list(self._node.view.seats_of(round_)))
        bundle = intake.bundle(round_, client, handed.content)
        return bundle is not None and is_body_key(
            bundle, handed.component, handed.key, intake.expected(round_)
        )
