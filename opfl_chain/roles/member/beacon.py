"""The beacon duty of a member: its part in the audit randomness of a round."""

from __future__ import annotations

from opfl_chain.chain import bls
from opfl_chain.chain.errors import InvalidPoint
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.randomness import beacon_message
from opfl_chain.roles.member.messages import Messages
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.peers import hex_field
from opfl_chain.roles.round_driver import place_of, turn_of
from opfl_chain.roles.view.records import RoundView
from opfl_chain.transport.errors import TransportError

_SIGNATURE_BYTES = 128
"""A point in G1, as the precompiles of EIP-2537 take it."""


_SETTLING_GAS = 150_000
"""Spare gas: the last of three signatures also writes the seed."""


class BeaconDuty:
    """Collects the members' signatures and publishes the aggregate, when it is our turn.

    If nobody has published it shortly before the deadline, each member publishes its own signature,
    so that only members who withhold theirs pay.
    """

    def __init__(
        self, node: Node, key: bls.SecretKey, store: MemberStore, messages: Messages
    ) -> None:
        self._node = node
        self._key = key
        self._store = store
        self._messages = messages
        phase = node.job.terms.phases.beacon
        self._margin = min(phase - 1, max(2, phase // 3))

    def act(self, round_: RoundView, now: Moment) -> None:
        """Sign the roll, and publish our signature if the deadline is near. Asks no peer."""
        if not self._is_due(round_, now):
            return
        own, address = self._signed(round_), self._node.address
        published = self._node.view.published_partials(round_.id)
        if self._is_near(round_, now) and address not in published:
            call = self._node.job.contracts.beacon.publish_partial(
                round_.id, address, own.eip2537()
            ).with_spare_gas(_SETTLING_GAS)
            self._node.send(call, f"partial {round_.number} {_name(own)}")

    def combine(self, round_: RoundView, now: Moment) -> None:
        """Publish the aggregate of all signatures, if it is our turn and ours was not published."""
        kept = self._store.partial(round_.opening)
        if round_.rolled_at is None or not self._is_due(round_, now) or kept is None:
            return
        if kept[0] != self._message(round_):
            return
        published = self._node.view.published_partials(round_.id)
        if self._is_near(round_, now) and self._node.address not in published:
            return
        own = bls.Signature.from_eip2537(kept[1])
        place = place_of(self._messages.seat(round_), round_.number)
        if now.has_come(turn_of(place, round_.rolled_at)) and not self._publish(round_, own):
            self._node.agenda.again()

    def _is_due(self, round_: RoundView, now: Moment) -> bool:
        """Return whether a seed is missing; the view shows a roll when it has confirmations."""
        if round_.roll is None or round_.rolled_at is None or round_.seed is not None:
            return False
        return not now.has_come(round_.schedule.beacon)

    def _is_near(self, round_: RoundView, now: Moment) -> bool:
        return now.has_come(round_.schedule.beacon - self._margin)

    def _signed(self, round_: RoundView) -> bls.Signature:
        """Sign the one roll of a round."""
        message = self._message(round_)
        kept = self._store.partial(round_.opening)
        if kept is not None and kept[0] == message:
            return bls.Signature.from_eip2537(kept[1])
        signature = self._key.sign(message)
        self._store.keep_partial(round_.opening, message, signature.eip2537())
        return signature

    def _message(self, round_: RoundView) -> bytes:
        """Compute the message from the events that we followed.

        A node that is asked for it could have us sign whatever it likes.
        """
        job, root = self._node.job, round_.roll.root if round_.roll else bytes(32)
        beacon = job.contracts.beacon.address
        return beacon_message(
            job.domain.chain_id, beacon, job.id, round_.number, round_.opening, root
        )

    def _publish(self, round_: RoundView, own: bls.Signature) -> bool:
        """Ask the peers for their signatures and publish the aggregate. False if one is missing."""
        kept = self._store.partial(round_.opening)
        message = kept[0] if kept else b""
        signatures, peers = [own], self._node.peers
        others = [member for _, member in self._messages.peers(round_)]

        def ask(member: Address) -> bytes:
            answer = peers.ask_member_json(member, f"/rounds/{round_.id}/partial")
            return hex_field(answer, "signature", _SIGNATURE_BYTES)

        for member, signature in peers.together(others, ask):
            if isinstance(signature, TransportError):
                return False
            try:
                partial = bls.Signature.from_eip2537(signature)
            except InvalidPoint:
                return False
            public = self._node.view.public_key(member)
            if public is None or not bls.verify(
                bls.PublicKey.from_eip2537(public), message, partial
            ):
                self._node.log.warning("invalid partial signature", extra={"member": member})
                return False
            signatures.append(partial)
        aggregate = bls.aggregate_signatures(signatures)
        call = self._node.job.contracts.beacon.publish(round_.id, aggregate.eip2537())
        self._node.send(call, f"beacon {round_.number} {_name(aggregate)}")
        return True


def _name(signature: bls.Signature) -> str:
    """Name a signature for its intent: a reorganisation may change the signed message."""
    return keccak256(signature.eip2537()).hex()[:16]
