"""Admission of connections to an HTTP server: strangers, known addresses, and peers by certificate.

Each kind has places of its own, so strangers cannot use up those of the others. Whoever sends a
request or reads a response may lose its place to a newcomer; a request that is being handled may
not. Handlers have places of their own, too: what they do cannot keep a peer from being recognised.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from opfl_chain.transport.limits import Limits, sender_of
from opfl_chain.transport.pool import Pool
from opfl_chain.transport.routes import Refusal
from opfl_chain.transport.stream import Stream

_MOST_KNOWN: Final = 10_000
"""Number of known addresses. Beyond it the one unheard of for longest is forgotten."""
_RETRY_SECONDS: Final = 1


class Displaced(ConnectionError):
    """A connection that has lost its place."""

    def __init__(self) -> None:
        super().__init__("it was idle for longest, and its place was needed")


class Visit:
    """One connection, from its arrival to its end."""

    def __init__(self, stream: Stream, remote: str) -> None:
        self.stream = stream
        self.remote = remote
        self.sender = sender_of(remote)
        """An address, or the name in the peer's certificate once it has shown one."""
        self.pool: Pool[Visit] | None = None
        self.displaced = False
        self.thread: threading.Thread | None = None

    @property
    def active_at(self) -> float:
        return self.stream.active_at

    @property
    def waits_for_us(self) -> bool:
        return self.stream.waits_for_us


class Reception:
    """Safe to share between threads."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._strangers = self._pool()
        self._known_senders = self._pool()
        self._peers: dict[str, Pool[Visit]] = {}
        self._known: OrderedDict[str, None] = OrderedDict()
        self._handled: defaultdict[Pool[Visit], Counter[str]] = defaultdict(Counter)
        self._lock = threading.Lock()

    def admit(self, visit: Visit) -> Visit | None:
        """Give a new connection a place. Return the one that was cut off for it, if any."""
        with self._lock:
            known = visit.sender in self._known
            return self._enter(visit, self._known_senders if known else self._strangers)

    def recognise(self, visit: Visit, name: str) -> None:
        """Move a peer that has shown its certificate to the places reserved for its name."""
        self.vouch_for(visit)
        with self._lock:
            self._leave(visit)
            visit.sender = name
            reserved = self._limits.connections_per_peer
            pool = self._peers.setdefault(name, Pool(reserved, reserved))
            self._enter(visit, pool)

    def vouch_for(self, visit: Visit) -> None:
        """Remember the address of a party of the job, which has shown that it is one."""
        sender = sender_of(visit.remote)
        with self._lock:
            self._known.pop(sender, None)
            self._known[sender] = None
            if len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)

    @contextmanager
    def handling(self, visit: Visit) -> Iterator[None]:
        """Protect a connection while its request is handled."""
        with self._lock:
            pool = self._leave(visit)
            handled = self._handled[pool]
            if handled.total() >= pool.places or handled[visit.sender] >= pool.places_per_sender:
                self._enter(visit, pool)
                raise Refusal(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    "too many requests are being handled",
                    {"Retry-After": str(_RETRY_SECONDS)},
                )
            handled[visit.sender] += 1
        try:
            yield
        finally:
            visit.stream.touch()
            with self._lock:
                handled[visit.sender] -= 1
                if not handled[visit.sender]:
                    del handled[visit.sender]
                self._enter(visit, pool)

    def leave(self, visit: Visit) -> None:
        """Free the place of a connection that has ended."""
        with self._lock:
            if visit.pool is not None:
                visit.pool.leave(visit)

    def _pool(self) -> Pool[Visit]:
        return Pool(self._limits.connections, self._limits.connections_per_address)

    def _enter(self, visit: Visit, pool: Pool[Visit]) -> Visit | None:
        visit.pool = pool
        displaced = pool.enter(visit)
        if displaced is not None:
            displaced.displaced = True
            displaced.stream.cut()
        return displaced

    def _leave(self, visit: Visit) -> Pool[Visit]:
        """Take a connection from its place. Raises Displaced if it has lost it already."""
        if visit.displaced or visit.pool is None:
            raise Displaced
        visit.pool.leave(visit)
        return visit.pool
