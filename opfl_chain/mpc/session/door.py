"""A member's port while members meet: a caller is authenticated before anything it says is read.

One thread serves all callers and blocks for none. Under TLS a caller is nobody until it has shown
the certificate of a member that may call; then it moves from the places that all strangers share to
those of its member. Without TLS, which is for loopback only, its greeting is all there is: any
process of this machine can pass for a member, but cannot shut the port with idle connections.
"""

from __future__ import annotations

import select
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from opfl_chain.mpc.session.greeting import Connection, Refused
from opfl_chain.mpc.session.ranks import Rank
from opfl_chain.system.closing import Closing
from opfl_chain.transport.deadline import Deadline
from opfl_chain.transport.limits import sender_of
from opfl_chain.transport.pool import Pool, is_ready
from opfl_chain.transport.tls import names_of

STRANGERS: Final = 128
"""Callers that are not authenticated yet."""
STRANGERS_PER_ADDRESS: Final = 64
_PER_MEMBER: Final = 16
"""Several attempts to call, of one connection for each purpose."""
_ACCEPTED_AT_ONCE: Final = 16
"""New callers before the others are looked at again."""
_POLL_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 0.05
"""Pause after a failed accept, for example without free descriptors."""

Greet = Callable[[Connection, Rank | None, dict[str, object]], None]
"""Takes over a connection with its greeting, and the rank that its certificate shows. Raises
Refused, and then the connection is closed."""


class Caller:
    """A connection that has not greeted yet."""

    def __init__(self, stream: socket.socket, address: str, deadline: Deadline) -> None:
        self.stream = stream
        self.sender = sender_of(address)
        self.deadline = deadline
        self.active_at = 0.0
        self.rank: Rank | None = None
        self.connection: Connection | None = None
        """Set once the caller may greet."""

    @property
    def waits_for_us(self) -> bool:
        return is_ready(self.stream, select.POLLIN)


class Door(Closing):
    """Serves the callers of a listening socket from its construction until it is closed.

    `ranks` are the members that may call, within `seconds` from the connection to the greeting.
    `refused` is told why a caller was sent away.
    """

    def __init__(
        self,
        listener: socket.socket,
        tls: ssl.SSLContext | None,
        ranks: Mapping[str, Rank],
        seconds: float,
        greet: Greet,
        refused: Callable[[Exception], None],
    ) -> None:
        self._listener = listener
        self._tls = tls
        self._ranks = dict(ranks)
        self._seconds = seconds
        self._greet = greet
        self._refused = refused
        self._strangers: Pool[Caller] = Pool(STRANGERS, STRANGERS_PER_ADDRESS)
        self._members: dict[Rank, Pool[Caller]] = {
            rank: Pool(_PER_MEMBER, _PER_MEMBER) for rank in ranks.values()
        }
        self._callers: set[Caller] = set()
        self._selector = selectors.DefaultSelector()
        self._wake_in, self._wake_out = socket.socketpair()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self._wake_in, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send away whoever has not greeted. The listener stays open."""
        self._wake_out.close()
        self._thread.join()

    def _serve(self) -> None:
        try:
            while True:
                self._send_late_ones_away()
                ready = {key.fileobj: key.data for key, _ in self._selector.select(self._pause)}
                if self._wake_in in ready:
                    return
                for caller in ready.values():
                    if caller in self._callers:
                        self._advance(caller)
                if self._listener in ready:
                    self._accept()
        finally:
            for caller in self._callers:
                caller.stream.close()
            self._selector.close()
            self._wake_in.close()

    @property
    def _pause(self) -> float:
        remaining = [caller.deadline.remaining for caller in self._callers]
        return min([_POLL_SECONDS, *remaining])

    def _send_late_ones_away(self) -> None:
        for caller in [each for each in self._callers if each.deadline.passed]:
            self._forget(caller)
            caller.stream.close()

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                stream, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:
                time.sleep(_PAUSE_SECONDS)
                return
            self._let_in(stream, address[0])

    def _let_in(self, stream: socket.socket, address: str) -> None:
        stream.setblocking(False)
        try:
            if self._tls:
                stream = self._tls.wrap_socket(
                    stream, server_side=True, do_handshake_on_connect=False
                )
        except OSError:  # it is gone already
            stream.close()
            return
        caller = Caller(stream, address, Deadline(self._seconds))
        self._callers.add(caller)
        self._selector.register(stream, selectors.EVENT_READ, caller)
        self._enter(self._strangers, caller)
        if caller in self._callers and caller.waits_for_us:
            self._advance(caller)

    def _enter(self, pool: Pool[Caller], caller: Caller) -> None:
        displaced = pool.enter(caller)
        if displaced is not None:
            self._forget(displaced)
            displaced.stream.close()

    def _advance(self, caller: Caller) -> None:
        """Take one more step with a caller that has sent something."""
        caller.active_at = time.monotonic()
        try:
            connection = caller.connection or self._authenticate(caller)
            if connection is not None and (greetings := connection.arrived()):
                self._forget(caller)
                self._greet(connection, caller.rank, greetings[0])
        except Exception as error:  # noqa: BLE001 - no caller may end the service of the others
            self._forget(caller)
            caller.stream.close()
            self._refused(error)

    def _authenticate(self, caller: Caller) -> Connection | None:
        """Return the connection of a caller that may greet; None while its handshake lasts."""
        stream = caller.stream
        if isinstance(stream, ssl.SSLSocket):
            try:
                stream.do_handshake()
            except ssl.SSLWantReadError:
                self._selector.modify(stream, selectors.EVENT_READ, caller)
                return None
            except ssl.SSLWantWriteError:
                self._selector.modify(stream, selectors.EVENT_WRITE, caller)
                return None
            self._selector.modify(stream, selectors.EVENT_READ, caller)
            caller.rank = self._rank_in(stream)
            self._strangers.leave(caller)
            self._enter(self._members[caller.rank], caller)
        caller.connection = Connection(stream)
        return caller.connection

    def _rank_in(self, stream: ssl.SSLSocket) -> Rank:
        """Return the member whose certificate a caller has shown."""
        names = names_of(stream)
        for name in names & self._ranks.keys():
            return self._ranks[name]
        shown = ", ".join(sorted(names))
        raise Refused(f"its certificate is for {shown}, which is not expected to call")

    def _forget(self, caller: Caller) -> None:
        if caller in self._callers:
            self._callers.discard(caller)
            self._selector.unregister(caller.stream)
            self._strangers.leave(caller)
            for pool in self._members.values():
                pool.leave(caller)
