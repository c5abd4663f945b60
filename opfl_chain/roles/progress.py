"""The progress of a daemon, for its health: settled at a block, busy, or waiting for something."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from opfl_chain.transport.routes import Request, Response, Route

ENDING: Final = "ending"
"""The activity of a daemon that is about to exit."""


class Agenda:
    """Collects the blocks that duties wait for. Used by the acting thread only."""

    def __init__(self) -> None:
        self.head = 0
        """The latest block."""
        self.next_block: int | None = None

    def begin(self, head: int) -> None:
        """Start anew: duties that still wait for a block note it again."""
        self.head = head
        self.next_block = None

    def note(self, block: int) -> None:
        """Note a future block with a duty."""
        if self.next_block is None or block < self.next_block:
            self.next_block = block

    def again(self) -> None:
        """Note the next block for a duty that failed and may succeed then."""
        self.note(self.head + 1)


@dataclass(frozen=True)
class Place:
    """A position on the chain up to which a daemon has done everything."""

    block: int | None
    """The last block whose events it knows; None before the first one."""
    hash: str | None
    head: int
    """The latest block."""


class Progress:
    """Activity of a daemon. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._activity = 0
        self._requests = 0
        self._doing: str | None = "starting"
        self._settled_at: Place | None = None
        self._next_block: int | None = None
        self._transaction: tuple[int, str] | None = None

    def begin(self, what: str) -> None:
        """Record that the daemon is busy from now on."""
        with self._lock:
            self._activity += 1
            self._doing = what

    def settle(self, place: Place, next_block: int | None) -> None:
        """Record that nothing is left to do until `next_block`, unless something happens before."""
        with self._lock:
            self._activity += 1
            self._doing, self._settled_at, self._next_block = None, place, next_block

    def count(self) -> None:
        """Count something else that began or ended, such as an audit."""
        with self._lock:
            self._activity += 1

    def is_settled_at(self, place: Place) -> bool:
        with self._lock:
            return self._doing is None and self._settled_at == place

    def unmined(self, head: int, key: str) -> None:
        """Record that a transaction was sent and is in no block up to `head`."""
        with self._lock:
            if self._transaction != (head, key):
                self._activity += 1
            self._transaction = head, key

    def sent(self) -> None:
        """Record that no transaction is waited for."""
        with self._lock:
            self._activity += 1
            self._transaction = None

    def counted(self, route: Route) -> Route:
        """Return the route with requests counted as activity."""

        def handle(request: Request) -> Response:
            with self._answering():
                return route.handler(request)

        return replace(route, handler=handle)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        self._add_requests(1)
        try:
            yield
        finally:
            self._add_requests(-1)

    def _add_requests(self, number: int) -> None:
        with self._lock:
            self._activity += 1
            self._requests += number

    def report(self, stirred: bool, audit: str | None, meeting: str | None) -> dict[str, Any]:
        """Return the progress fields of the daemon's health.

        `stirred` means that it was woken to act. That has to wait while a transaction is pending,
        and so has looking whether blocks were replaced: it names none that it knows until then.
        """
        with self._lock:
            settled_at, transaction, busy = self._settled_at, None, audit
            if self._transaction is not None:
                head, transaction = self._transaction
                settled_at = Place(None, None, head)
            elif self._doing is not None or stirred:
                busy = busy or self._doing or "about to act"
            if self._requests:
                busy = busy or "answering a request"
            return {
                "activity": self._activity,
                "busy": busy,
                "settled_at": asdict(settled_at) if settled_at and busy is None else None,
                "transaction": transaction,
                "meeting": meeting,
                "next_block": self._next_block if self._doing is None else None,
            }
