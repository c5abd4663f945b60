"""A member's part in the audit randomness of a round."""

from __future__ import annotations

from opfl_chain.chain import bls
from opfl_chain.chain.errors import InvalidPoint
from opfl_chain.nodes.chain_view import RoundView
from opfl_chain.nodes.member_store import MemberStore
from opfl_chain.nodes.node import Moment, Node
from opfl_chain.nodes.peers import hex_field
from opfl_chain.nodes.turns import is_due, place_of
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.transport.errors import TransportError

_SIGNATURE_BYTES = 128
"""A point in G1, as the precompiles of EIP-2537 take it."""


_SETTLING_GAS = 150_000
"""The third of three signatures also writes the seed."""


class BeaconDuty:
    """Members ask each other for their signatures, and one of them publishes the aggregate.

    When that has not happened as the deadline comes near, each publishes its own signature, so that
    whoever did not withhold anything does not pay.
    """

    def __init__(self, node: Node, rank: int, key: bls.SecretKey, store: MemberStore) -> None:
        self._node = node
        self._rank = rank
        self._key = key
        self._store = store
        phase = node.job.terms.phases.beacon
        self._margin = min(phase - 1, max(2, phase // 3))

    def act(self, round_: RoundView, now: Moment) -> None:
        deadline = round_.schedule.beacon
        if not round_.closed(now.seen) or round_.seed is not None or now.head >= deadline:
            return
        own = self._signed(round_, now)
        address = self._node.address
        published = self._node.view.published_partials(round_.id)
        if now.head >= deadline - self._margin and address not in published:
            # Before anyone is asked for anything: a peer that answers slowly must not cost us this.
            call = self._node.job.contracts.beacon.publish_partial(
                round_.id, address, own.eip2537()
            ).with_spare_gas(_SETTLING_GAS)
            self._node.send(call, f"partial {round_.number} {_name(own)}")
            return
        place = place_of(self._rank, round_.number)
        if is_due(place, round_.schedule.commit, now.head):
            self._publish(round_, own)

    def _signed(self, round_: RoundView, now: Moment) -> bls.Signature:
        """Sign the closed round, as it is in the blocks that were seen."""
        message = self._node.job.contracts.beacon.message(round_.id, block=now.seen)
        kept = self._store.partial(round_.number)
        if kept is not None and kept[0] == message:
            return bls.Signature.from_eip2537(kept[1])
        signature = self._key.sign(message)
        self._store.keep_partial(round_.number, message, signature.eip2537())
        return signature

    def _publish(self, round_: RoundView, own: bls.Signature) -> None:
        kept = self._store.partial(round_.number)
        message = kept[0] if kept else b""
        signatures = [own]
        for _, member in self._node.peers.others(self._node.address):
            try:
                path = f"/rounds/{round_.id}/partial"
                answer = self._node.peers.ask_member_json(member, path)
                partial = bls.Signature.from_eip2537(
                    hex_field(answer, "signature", _SIGNATURE_BYTES)
                )
            except (TransportError, InvalidPoint):
                return
            public = self._node.view.public_key(member)
            if public is None or not bls.verify(
                bls.PublicKey.from_eip2537(public), message, partial
            ):
                self._node.log.warning("a partial signature is wrong", extra={"member": member})
                return
            signatures.append(partial)
        aggregate = bls.aggregate_signatures(signatures)
        call = self._node.job.contracts.beacon.publish(round_.id, aggregate.eip2537())
        self._node.send(call, f"beacon {round_.number} {_name(aggregate)}")


def _name(signature: bls.Signature) -> str:
    """A reorganisation may change what is signed, and that is then another intent."""
    return keccak256(signature.eip2537()).hex()[:16]
