"""Patience with peers: whoever keeps a daemon waiting is left alone for a while.

Seconds that a peer takes beyond what its answer may take are its debt, paid off by the time that
passes. A peer in debt is asked after the others, and one with too much debt is not asked. So a peer
that hangs costs us less than two fifths of our time in the long run, and so does one that drips or
answers late. A success does not clear the debt: then a peer could answer every other request. Nor
do requests that the peer makes: a peer that hangs can make them.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from opfl_chain.transport.errors import PeerTimedOut, TransportError

DUE_SECONDS: Final = 1.0
"""Time in which a peer may answer without debt, beside the time that the bytes take."""
BYTES_PER_SECOND: Final = 1 << 20
"""The slowest transfer that makes no debt."""
_ALLOWANCE: Final = 2.0
"""Debt with which a peer is still asked."""
_MOST_DEBT: Final = 14.0
"""An honest peer that was busy for long is asked again within a minute."""
_PAID_OFF: Final = 0.25
"""Seconds of debt that a second pays off."""
_MISLED: Final = 5.0
"""Debt for a body that is not what was asked for: a peer could send such bodies for ever."""
_MOST_OPEN: Final = 16
"""Requests that may be open to one peer, so that one that hangs does not take all threads."""


class KeepsWaiting(TransportError):
    """A peer that is not asked now, because it kept us waiting."""


@dataclass
class Transfer:
    """The bytes that a request has moved so far."""

    size: int = 0


class Patience:
    """Safe to share between threads.

    With endless `due_seconds`, as in virtual time, nobody is late: only a peer that did not answer
    at all is left alone, for the rest of the pass.
    """

    def __init__(
        self, due_seconds: float = DUE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._due_seconds = due_seconds
        self._most_open = _MOST_OPEN if math.isfinite(due_seconds) else math.inf
        self._clock = clock
        self._lock = threading.Lock()
        self._debts: dict[str, tuple[float, float]] = {}
        """Debt of each peer, and when it was so high. Time that was counted is not counted again,
        so that requests that wait together count once."""
        self._timed_out: set[str] = set()
        self._open: Counter[str] = Counter()

    def begin(self) -> None:
        """Begin a pass over all duties: peers that timed out in the last one may be asked again."""
        with self._lock:
            self._timed_out.clear()

    @contextlib.contextmanager
    def waiting(self, peer: str) -> Iterator[Transfer]:
        """Count the time of a request; raise `KeepsWaiting` at once if the peer is not asked now.

        The caller counts the bytes, for which there is time.
        """
        with self._lock:
            self._require(peer)
            self._open[peer] += 1
        started, transfer = self._clock(), Transfer()
        try:
            yield transfer
        except PeerTimedOut:
            with self._lock:
                self._timed_out.add(peer)
            raise
        finally:
            with self._lock:
                self._open[peer] -= 1
                seconds = self._due_seconds + transfer.size / BYTES_PER_SECOND
                self._count(peer, started + seconds)

    def misled(self, peer: str) -> None:
        """Count a body that is not what was asked for as if the peer had not answered."""
        with self._lock:
            if math.isfinite(self._due_seconds):
                debt = min(self._debt(peer) + _MISLED, _MOST_DEBT)
                self._debts[peer] = debt, self._clock()

    def in_order(self, peers: Iterable[str]) -> list[str]:
        """Return peers with those first that keep us waiting least, otherwise in their order."""
        with self._lock:
            return sorted(peers, key=self._debt)

    def _require(self, peer: str) -> None:
        if peer in self._timed_out:
            raise KeepsWaiting(f"{peer} timed out: it is asked again in the next pass")
        if (debt := self._debt(peer)) > _ALLOWANCE:
            seconds = (debt - _ALLOWANCE) / _PAID_OFF
            raise KeepsWaiting(f"{peer} kept us waiting: it is asked again in {seconds:.0f} s")
        if self._open[peer] >= self._most_open:
            raise KeepsWaiting(f"{peer} has not answered {self._open[peer]} requests yet")

    def _count(self, peer: str, due: float) -> None:
        now, counted = self._clock(), self._debts.get(peer, (0.0, -math.inf))[1]
        if (late := now - max(due, counted)) > 0:
            self._debts[peer] = min(self._debt(peer) + late, _MOST_DEBT), now

    def _debt(self, peer: str) -> float:
        debt, since = self._debts.get(peer, (0.0, 0.0))
        return max(0.0, debt - _PAID_OFF * (self._clock() - since))
