"""Contributions on a roll as one member has them: claims of the chain, and opened parts."""

from __future__ import annotations

from collections.abc import Container, Mapping

from opfl_chain.chain.bindings.types import RollEntry as RollEvidence
from opfl_chain.protocol.bundle import Bundle
from opfl_chain.protocol.delivery import Claim, Delivery, Expected
from opfl_chain.protocol.errors import DoesNotOpen
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.protocol.roll import Roll, RollEntry
from opfl_chain.protocol.sealing import Complaint, SealingKey
from opfl_chain.protocol.unsealing import (
    answer_with_keys,
    complain,
    complaint_stands,
    contribution_with_keys,
    open_answer,
    open_contribution,
)
from opfl_chain.roles.member.intake import BundleMissing, Intake
from opfl_chain.roles.member.messages import Messages
from opfl_chain.roles.member.newcomers import Newcomers
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.node import Node
from opfl_chain.roles.view.records import RoundView, on_public_roll


class Contributions:
    """Contributions and answers of all rounds, as one member has them."""

    def __init__(
        self,
        node: Node,
        store: MemberStore,
        messages: Messages,
        gradients: Intake,
        answers: Intake,
        sealing_key: SealingKey,
        newcomers: Newcomers,
    ) -> None:
        self._node = node
        self._store = store
        self._messages = messages
        self._gradients = gradients
        self._answers = answers
        self._sealing_key = sealing_key
        self._newcomers = newcomers

    def roll(self, round_: RoundView) -> Roll | None:
        """The roll on chain with its content hashes, which only members know."""
        self._newcomers.fetch_roll(round_)
        entries = self._store.roll(round_.opening)
        if round_.roll is None or not entries:
            return None
        roll = Roll.of(entries, is_public=self._node.job.terms.public_roll)
        return roll if roll.root == round_.roll.root else None

    def on_roll(self, round_: RoundView) -> Container[ClientIndex]:
        """Return the clients on the roll, also where the chain has its root alone."""
        roll = self.roll(round_)
        return {each.client for each in roll.entries} if roll else on_public_roll(round_)

    def claims(self, round_: RoundView) -> dict[Address, Claim]:
        """The on-chain facts about all contributions of a settled round, by client."""
        roll, view = self.roll(round_), self._node.view
        clients = view.clients()
        return {
            entry.address: Claim(
                client=entry.client,
                round_number=round_.number,
                commitment=entry.commitment,
                dataset_root=clients[entry.address].root,
                audited=view.is_audited(round_, entry.address),
            )
            for entry in (roll.entries if roll else ())
        }

    def delivery(
        self, round_: RoundView, client: Address, expected: Expected, answer: bytes | None = None
    ) -> Delivery:
        """Our parts of a contribution, with those of the answer with this content hash.

        Raise what is wrong with them, or that one is not here.
        """
        seat = self._messages.seat(round_)
        entry = self._entry(round_, client)
        content_hash = entry.content_hash if entry else b""
        if not self.is_sealed_to_us(round_):
            peers = [member for _, member in self._messages.peers(round_)]
            self._gradients.fetch(round_, client, content_hash, peers)
        contribution = self._gradients.required(round_, client, content_hash)
        answered = self._answers.required(round_, client, answer) if answer is not None else None
        if not self.is_sealed_to_us(round_):
            return self._handed(round_, seat, expected, contribution, answered)
        context, key = self._gradients.context(round_, client), self._sealing_key
        gradient = open_contribution(contribution, seat, key, context, expected)
        if answered is None:
            return Delivery(gradient)
        context = self._answers.context(round_, client)
        return Delivery(gradient, *open_answer(answered, seat, key, context, expected))

    def _handed(
        self,
        round_: RoundView,
        seat: int,
        expected: Expected,
        contribution: Bundle,
        answered: Bundle | None,
    ) -> Delivery:
        """Open a delivery with keys that others handed to us, who took the seat later."""
        keys = self._keys(round_, contribution)
        gradient = contribution_with_keys(contribution, seat, keys, expected)
        if answered is None:
            return Delivery(gradient)
        keys = self._keys(round_, answered)
        return Delivery(gradient, *answer_with_keys(answered, seat, keys, expected))

    def _keys(self, round_: RoundView, bundle: Bundle) -> tuple[bytes, bytes]:
        if (keys := self._newcomers.keys(round_, bundle.content_hash)) is None:
            raise BundleMissing(f"no keys for a bundle of round {round_.number} are here yet")
        return keys

    def deliveries(
        self, round_: RoundView, expected: Expected, answers: Mapping[Address, bytes]
    ) -> dict[int, Delivery]:
        """Our parts of all contributions on the roll, by client index."""
        return {
            claim.client: self.delivery(round_, client, expected, answers.get(client))
            for client, claim in self.claims(round_).items()
        }

    def complaint(self, round_: RoundView, client: Address) -> Complaint | None:
        """Show that a contribution on the roll does not open for us, if it does not.

        We were away when members complained, or it would not be there. None also if it is sealed to
        somebody else, who had our seat before us.
        """
        entry = self._entry(round_, client)
        if entry is None or not self.is_sealed_to_us(round_):
            return None
        bundle = self._gradients.required(round_, client, entry.content_hash)
        context, seat = self._gradients.context(round_, client), self._messages.seat(round_)
        try:
            open_contribution(
                bundle, seat, self._sealing_key, context, self._gradients.expected(round_)
            )
        except DoesNotOpen:
            return complain(bundle, seat, self._sealing_key, context)
        return None

    def stands(self, round_: RoundView, client: Address, seat: int, complaint: Complaint) -> bool:
        """Return whether a complaint shows that a contribution on the roll does not open."""
        if (entry := self._entry(round_, client)) is None:
            return False
        peers = [member for _, member in self._messages.peers(round_)]
        self._gradients.fetch(round_, client, entry.content_hash, peers)
        bundle = self._gradients.bundle(round_, client, entry.content_hash)
        expected, key = self._gradients.expected(round_), self.sealed_to(round_, seat)
        context = self._gradients.context(round_, client)
        return bundle is not None and complaint_stands(bundle, key, complaint, context, expected)

    def sealed_to(self, round_: RoundView, seat: int) -> bytes:
        """The key that bundles of a round are sealed to: of who had the seat when it opened.

        Whoever took the seat since can open nothing with its own key, and complain of nothing.
        """
        original = self._node.view.round(round_.number) or round_
        return self._node.view.sealing_key(self._node.view.seats_of(original)[seat]) or b""

    def is_sealed_to_us(self, round_: RoundView) -> bool:
        """Return whether we had our seat when a round opened."""
        return self._newcomers.is_sealed_to_us(round_)

    def can_open(self, round_: RoundView, client: Address, answer: bytes) -> bool:
        """Return whether the keys of a contribution and its answer are here, if we need any."""
        entry = self._entry(round_, client)
        return entry is not None and self._newcomers.has_keys(round_, (entry.content_hash, answer))

    def evidence(self, round_: RoundView, client: Address) -> RollEvidence | None:
        """Return the evidence on chain that a client contributed, if we have it."""
        roll, entry = self.roll(round_), self._entry(round_, client)
        if roll is None or entry is None:
            return None
        signed = self._gradients.signed(round_, client, entry.content_hash)
        bundle = self._gradients.bundle(round_, client, entry.content_hash)
        if signed is None or bundle is None:
            return None
        path = tuple(roll.proof(entry.client))
        return RollEvidence(bundle.commitment, bundle.rest_hash, path, signed.signature)

    def _entry(self, round_: RoundView, client: Address) -> RollEntry | None:
        entries = self._store.roll(round_.opening)
        return next((each for each in entries if each.address == client), None)
