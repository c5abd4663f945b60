"""The sum of all that passed in a round: our components, and the opened sum."""

from __future__ import annotations

import logging
import threading

import numpy as np

from opfl_chain.mpc.session.ranks import MEMBERS
from opfl_chain.protocol.aggregate import FEWEST_CONTRIBUTIONS, NOTHING, open_sum
from opfl_chain.protocol.delivery import Held
from opfl_chain.protocol.identifiers import RoundId
from opfl_chain.protocol.ring import UnsignedWords, Words
from opfl_chain.protocol.shares import held_indices
from opfl_chain.roles.member.audits import Judging
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.peers import Peers
from opfl_chain.roles.view.view import ChainView, RoundView
from opfl_chain.transport.errors import TransportError

_LOGGER = logging.getLogger("opfl.sums")
_ROUNDS_KEPT = 2
"""The current round, and the one before it for late peers."""


class SumsDiffer(TransportError):
    """Two members report different values of the same component."""


class Sums:
    """Opens sums by asking members for components, each of which two members hold."""

    def __init__(self, view: ChainView, peers: Peers, rank: int | None = None) -> None:
        """`rank` is ours, if we are a member ourselves."""
        self._view = view
        self._peers = peers
        self._rank = rank

    def open(self, round_: RoundView) -> Words | None:
        """Return the aggregate of a decided round, or None while a component is missing."""
        verdict = self._view.decided_verdict(round_)
        if verdict is None:
            return None
        if len(verdict.passed) < FEWEST_CONTRIBUTIONS:
            return NOTHING
        components: dict[int, UnsignedWords] = {}
        members = list(enumerate(self._view.job.members))
        # Our own components first, so that it is a peer that is found to differ from them.
        for rank, member in sorted(members, key=lambda each: each[0] != self._rank):
            try:
                held = self.held(round_) if rank == self._rank else self._ask(member, round_.id)
            except TransportError as error:
                _LOGGER.info("no sum yet", extra={"member": member, "reason": str(error)})
                continue
            for index, component in zip(held_indices(rank), held or (), strict=False):
                known = components.setdefault(index, component)
                if not np.array_equal(known, component):
                    raise SumsDiffer(
                        f"member {rank} reports another value of component {index} of the sum of"
                        f" round {round_.number} than its other holder"
                    )
        return open_sum(components) if len(components) == MEMBERS else None

    def held(self, round_: RoundView) -> Held | None:
        """Our own components: those of a member."""
        del round_
        return None

    def _ask(self, member: str, round_id: RoundId) -> Held:
        words = self._view.job.boundary.coordinates
        body = self._peers.ask_member(member, f"/rounds/{round_id}/sum", 2 * 8 * words)
        if len(body) != 2 * 8 * words:
            raise TransportError(f"the sum has {len(body):,} bytes, expected {2 * 8 * words:,}")
        own, following = np.frombuffer(body, "<u8").reshape(2, words)
        return own, following


class MemberSums(Sums):
    """Sums of a member, which holds two of the three components itself."""

    def __init__(
        self, view: ChainView, peers: Peers, judging: Judging, store: MemberStore, rank: int
    ) -> None:
        super().__init__(view, peers, rank)
        self._store = store
        self._judging = judging
        self._kept: dict[int, tuple[bytes, Held]] = {}
        self._summing = threading.Lock()

    def held(self, round_: RoundView) -> Held | None:
        """Our components of a decided round; of a round that is over, only if still cached.

        Anyone may ask, so a request must not make us add up again.
        """
        with self._summing:
            kept = self._kept.get(round_.number)
            if kept is not None and kept[0] == round_.verdict_hash:
                return kept[1]
            if round_.verdict_hash is None or round_.over is not None:
                return None
            verdict = self._view.decided_verdict(round_)
            if verdict is None or len(verdict.passed) < FEWEST_CONTRIBUTIONS:
                return None
            held = self._judging.summed(round_, verdict)
            if held is None or not self._store.may_sum(round_.number, verdict.hash):
                return None
            self._kept[round_.number] = round_.verdict_hash, held
            for number in sorted(self._kept)[:-_ROUNDS_KEPT]:
                del self._kept[number]
            return held
