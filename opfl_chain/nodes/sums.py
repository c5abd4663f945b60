"""The sum of what passed in a round: our part of it, and all of it with the peers' parts."""

from __future__ import annotations

import logging
import threading

import numpy as np

from opfl_chain.mpc.ranks import MEMBERS
from opfl_chain.nodes.chain_view import ChainView, RoundView
from opfl_chain.nodes.judging import Judging
from opfl_chain.nodes.member_store import MemberStore
from opfl_chain.nodes.peers import Peers
from opfl_chain.protocol.aggregate import (
    FEWEST_CONTRIBUTIONS,
    NOTHING,
    open_sum,
)
from opfl_chain.protocol.delivery import Held
from opfl_chain.protocol.identifiers import RoundId
from opfl_chain.protocol.ring import UnsignedWords, Words
from opfl_chain.protocol.ring_shares import held_indices
from opfl_chain.transport.errors import TransportError

_LOGGER = logging.getLogger("opfl.sums")
_ROUNDS_KEPT = 2
"""The one that ends, and the one before for a peer that is late."""


class SumsDiffer(TransportError):
    """Two members say different things of the same component."""


class Sums:
    """Opened by asking for components, each of which two members hold."""

    def __init__(self, view: ChainView, peers: Peers) -> None:
        self._view = view
        self._peers = peers

    def open(self, round_: RoundView, own: dict[int, UnsignedWords]) -> Words | None:
        """The aggregate of a decided round, or None as long as a component is missing."""
        verdict = self._view.decided_verdict(round_)
        if verdict is None:
            return None
        if len(verdict.passed) < FEWEST_CONTRIBUTIONS:
            return NOTHING
        components = dict(own)
        for rank, member in enumerate(self._view.job.members):
            indices = held_indices(rank)
            if all(index in own for index in indices):
                continue
            try:
                held = self._ask(member, round_.id)
            except TransportError as error:
                _LOGGER.info("no sum yet", extra={"member": member, "reason": str(error)})
                continue
            for index, component in zip(indices, held, strict=True):
                known = components.setdefault(index, component)
                if not np.array_equal(known, component):
                    raise SumsDiffer(
                        f"member {rank} says something else of component {index} of the sum of"
                        f" round {round_.number} than its other holder"
                    )
        return open_sum(components) if len(components) == MEMBERS else None

    def _ask(self, member: str, round_id: RoundId) -> Held:
        words = self._view.job.boundary.coordinates
        body = self._peers.ask_member(member, f"/rounds/{round_id}/sum", 2 * 8 * words)
        if len(body) != 2 * 8 * words:
            raise TransportError(f"a sum has {len(body):,} bytes, it must have {2 * 8 * words:,}")
        own, following = np.frombuffer(body, "<u8").reshape(2, words)
        return own, following


class MemberSums(Sums):
    """Of a member, which holds two of the three components itself."""

    def __init__(
        self, view: ChainView, peers: Peers, judging: Judging, store: MemberStore, rank: int
    ) -> None:
        super().__init__(view, peers)
        self._store = store
        self._judging = judging
        self._rank = rank
        self._kept: dict[int, tuple[bytes, Held]] = {}
        self._summing = threading.Lock()

    def held(self, round_: RoundView) -> Held | None:
        """Our components, once the round is decided. Of one that is over, only if they are kept.

        Anyone may ask, so nobody can have us add up again and again.
        """
        with self._summing:
            kept = self._kept.get(round_.number)
            if kept is not None and kept[0] == round_.verdict_hash:
                return kept[1]
            if round_.verdict_hash is None or round_.over is not None:
                return None
            held = self._summed(round_)
            if held is not None:
                self._kept[round_.number] = round_.verdict_hash, held
                for number in sorted(self._kept)[:-_ROUNDS_KEPT]:
                    del self._kept[number]
            return held

    def _summed(self, round_: RoundView) -> Held | None:
        verdict = self._view.decided_verdict(round_)
        if verdict is None or len(verdict.passed) < FEWEST_CONTRIBUTIONS:
            return None
        held = self._judging.summed(round_, verdict)
        if held is None or not self._store.may_sum(round_.number, verdict.hash):
            return None
        return held

    def aggregate(self, round_: RoundView) -> Words | None:
        own: dict[int, UnsignedWords] = {}
        if (held := self.held(round_)) is not None:
            own = dict(zip(held_indices(self._rank), held, strict=True))
        return self.open(round_, own)
