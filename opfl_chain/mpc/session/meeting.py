"""Meeting of the three members before a session: all present, same audit, fresh link ports.

SPU's own connection setup reports neither who is missing nor why, and needs ports agreed in
advance. Here a member calls those of lower rank and answers those of higher rank; each greeting
names the audit and the port of the member's link. Then all report ready and create the link. Each
pair has two connections: for heartbeats, and for messages beside the link. Under TLS two more carry
the link itself, so that no other port is open. The port is open only until all have met, and its
`Door` lets authenticated members in, and nobody else.
"""

from __future__ import annotations

import hashlib
import queue
import secrets
import socket
import ssl
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from opfl_chain.mpc.session.door import Door
from opfl_chain.mpc.session.errors import AddressTaken, FrameInvalid, PeerUnreachable
from opfl_chain.mpc.session.greeting import (
    HEARTBEATS,
    MESSAGES,
    PURPOSES,
    Connection,
    Hello,
    Refused,
    wait_readable,
)
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.mpc.session.ranks import MEMBERS, Rank, peers_of
from opfl_chain.transport.addresses import split_address
from opfl_chain.transport.deadline import Deadline
from opfl_chain.transport.errors import shown

_CALL_SECONDS = 3.0
"""Time limit for a peer to answer a call, and for a caller to authenticate itself and greet."""
_CALL_PART = 60
"""The limit is this part of the time to meet if that is more: who waits for long for peers, as in
virtual time, has slow ones."""
_RETRY_SECONDS = 0.1
_POLL_SECONDS = 0.02
"""Interval of looking for calls that the door has answered."""
_BACKLOG = 1024
_MAX_AUDIT_LENGTH = 200
"""Length at which a peer's audit name is cut in messages."""
_LINK_OF_CALLER, _LINK_OF_CALLED = "link of the caller", "link of the called"
"""Purposes of the further connections under TLS: one for each direction of SPU's requests."""

_NOT_CALLED = "it did not connect to us"
_NO_ANSWER = "it does not answer"
_NOBODY = "nothing listens at its address"
_AWAY = (_NOT_CALLED, _NO_ANSWER, _NOBODY)


@dataclass(frozen=True)
class Meeting:
    """Open connections to both peers, and the parameters of the link."""

    connections: dict[Rank, Connection]
    """Connections for heartbeats."""
    streams: dict[Rank, socket.socket]
    """Streams for messages."""
    link_id: str
    link_addresses: tuple[str, ...]
    """Addresses on loopback; empty under TLS, where the link goes through a `Tunnel`."""
    link_streams: dict[tuple[Rank, Rank], socket.socket]
    """Streams for the tunnel, by (requesting, answering) member."""


@dataclass(frozen=True)
class _Peer:
    hello: Hello
    connections: dict[str, Connection]
    """Connections by purpose."""

    @property
    def heartbeat(self) -> Connection:
        return self.connections[HEARTBEATS]

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()


class MeetingPoint:
    """One member's part in one meeting."""

    def __init__(self, config: PartyConfig, audit: str, link_port: int, deadline: Deadline) -> None:
        self._config = config
        self._hello = Hello(audit, config.rank, link_port, secrets.token_hex(16))
        self._purposes = (*PURPOSES, *((_LINK_OF_CALLER, _LINK_OF_CALLED) if config.tls else ()))
        self._deadline = deadline
        self._met: dict[Rank, _Peer] = {}
        self._ready: set[Rank] = set()
        self._gone: list[Rank] = []
        self._answered: queue.SimpleQueue[tuple[Hello, str, Connection]] = queue.SimpleQueue()
        self._parts: dict[tuple[Rank, str], tuple[Hello, Connection]] = {}
        self._call_seconds = max(_CALL_SECONDS, deadline.seconds / _CALL_PART)
        self._reasons = {
            rank: _NOT_CALLED if rank > config.rank else _NO_ANSWER
            for rank in peers_of(config.rank)
        }

    def meet(self) -> Meeting:
        """Wait for both peers. Raises PeerUnreachable for one that does not join."""
        try:
            with self._listen() as listener, self._open_door(listener):
                self._gather()
        except BaseException:
            for peer in self._met.values():
                peer.close()
            raise
        finally:
            for _, connection in self._parts.values():
                connection.close()
            self._close_late_calls()
        met = [self._hello, *(peer.hello for peer in self._met.values())]
        hellos = sorted(met, key=lambda hello: hello.rank)
        together = "/".join([self._hello.audit, *(hello.nonce for hello in hellos)])
        return Meeting(
            {rank: peer.heartbeat for rank, peer in self._met.items()},
            {rank: peer.connections[MESSAGES].stream for rank, peer in self._met.items()},
            hashlib.sha256(together.encode()).hexdigest(),
            () if self._config.tls else tuple(map(self._link_address, hellos)),
            self._link_streams(),
        )

    def _gather(self) -> None:
        announced: set[Rank] = set()
        next_call = 0.0
        while self._ready != set(peers_of(self._config.rank)):
            if self._deadline.passed:
                raise self._unreachable()
            if time.monotonic() >= next_call:
                for rank in range(self._config.rank):
                    if rank not in self._met:
                        self._call(rank)
                next_call = time.monotonic() + _RETRY_SECONDS
            streams = [peer.heartbeat.stream for peer in self._met.values()]
            wait_readable(streams, min(_POLL_SECONDS, self._deadline.remaining))
            self._admit_callers()
            self._read_ready()
            announced &= set(self._met)
            if len(self._met) == MEMBERS - 1:
                for rank in set(self._met) - announced:
                    self._met[rank].heartbeat.send_at_once({"ready": True})
                    announced.add(rank)

    def _unreachable(self) -> PeerUnreachable:
        # Of two missing peers, one may have left because the other never came or left before it.
        never = [rank for rank in self._reasons if rank not in self._gone]
        absent = [rank for rank in (*never, *self._gone) if rank not in self._met]
        if absent:
            rank, reason = absent[0], self._reasons[absent[0]]
        else:
            rank = next(rank for rank in self._met if rank not in self._ready)
            reason = "it connected to us, but did not meet the other member"
        return PeerUnreachable(rank, self._config.addresses[rank], self._deadline.seconds, reason)

    def _record_reason(self, rank: Rank, error: Exception, before: str = "") -> None:
        """Record why a peer is missing. Mere absence does not replace a more specific reason."""
        away = isinstance(error, (TimeoutError, ConnectionError, ssl.SSLEOFError))
        if not away or self._reasons[rank] in _AWAY:
            self._reasons[rank] = before + _explain(error)

    def _admit_callers(self) -> None:
        """Admit peers that have called for every purpose."""
        while not self._answered.empty():
            hello, purpose, connection = self._answered.get()
            if earlier := self._parts.pop((hello.rank, purpose), None):
                earlier[1].close()  # it tried again
            self._parts[hello.rank, purpose] = hello, connection
            found = {each: self._parts.get((hello.rank, each)) for each in self._purposes}
            parts = {each: part[1] for each, part in found.items() if part and part[0] == hello}
            if len(parts) == len(self._purposes):
                for each in self._purposes:
                    del self._parts[hello.rank, each]
                if known := self._met.pop(hello.rank, None):
                    known.close()  # it restarted
                    self._ready.discard(hello.rank)
                self._met[hello.rank] = _Peer(hello, parts)

    def _close_late_calls(self) -> None:
        """Close connections that were answered too late for the meeting."""
        with suppress(queue.Empty):
            while True:
                self._answered.get_nowait()[2].close()

    def _read_ready(self) -> None:
        """Mark peers that report ready, and drop those that disconnected."""
        for rank, peer in list(self._met.items()):
            try:
                if any("ready" in header for header in peer.heartbeat.arrived()):
                    self._ready.add(rank)
            except (ConnectionError, FrameInvalid) as error:
                peer.close()
                del self._met[rank]
                self._ready.discard(rank)
                self._gone.append(rank)
                self._reasons[rank] = f"it connected and left again: {error}"

    # --- calling

    def _call(self, rank: Rank) -> None:
        with ExitStack() as stack:
            connections: dict[str, Connection] = {}
            hello = self._hello
            try:
                for purpose in self._purposes:
                    deadline = self._call_deadline()
                    connection = self._connect(rank, deadline)
                    stack.callback(connection.close)
                    connection.send(self._hello.to_json(purpose), deadline)
                    hello = Hello.from_json(connection.receive(deadline))
                    self._check(hello, rank)
                    connections[purpose] = connection
            except (OSError, FrameInvalid, Refused) as error:
                self._record_reason(rank, error)
                return
            stack.pop_all()
        self._met[rank] = _Peer(hello, connections)

    def _call_deadline(self) -> Deadline:
        return Deadline(min(self._call_seconds, self._deadline.remaining or 1e-3))

    def _connect(self, rank: Rank, deadline: Deadline) -> Connection:
        address = split_address(self._config.addresses[rank])
        # A machine answers this, however slow the process: one that does not answer is not there.
        stream = socket.create_connection(address, min(_CALL_SECONDS, deadline.remaining or 1e-3))
        stream.settimeout(deadline.remaining or 1e-3)
        tls = self._config.tls
        if tls is None:
            return Connection(stream)
        context = tls.context(ssl.PROTOCOL_TLS_CLIENT)
        try:
            return Connection(context.wrap_socket(stream, server_hostname=self._config.names[rank]))
        except BaseException:
            stream.close()
            raise

    def _check(self, hello: Hello, rank: Rank) -> None:
        if hello.audit != self._hello.audit:
            theirs = shown(hello.audit, _MAX_AUDIT_LENGTH)
            raise Refused(f"it is at audit '{theirs}', we are at {self._hello.audit!r}")
        if hello.rank != rank:
            raise Refused(f"it says that it is member {hello.rank}, expected {rank}")

    # --- answering

    def _listen(self) -> socket.socket:
        listener = self._config.reserve_address()
        try:
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            raise AddressTaken(self._config.address, str(error)) from error
        return listener

    def _open_door(self, listener: socket.socket) -> Door:
        tls, own = self._config.tls, self._config.rank
        return Door(
            listener,
            tls.context(ssl.PROTOCOL_TLS_SERVER) if tls else None,
            {self._config.names[rank]: rank for rank in peers_of(own) if rank > own},
            self._call_seconds,
            self._answer,
            self._record_refusal,
        )

    def _answer(
        self, connection: Connection, certified: Rank | None, greeting: dict[str, object]
    ) -> None:
        """Answer a greeting, in the door's thread."""
        hello, purpose = Hello.from_json(greeting), str(greeting.get("purpose"))
        try:
            self._check_caller(hello, purpose, certified)
        except Refused as refusal:
            connection.send_at_once({"refused": str(refusal)})
            raise
        connection.send_at_once(self._hello.to_json(purpose))
        self._check(hello, hello.rank)  # the caller finds the same in our greeting
        self._answered.put((hello, purpose, connection))

    def _check_caller(self, hello: Hello, purpose: str, certified: Rank | None) -> None:
        if purpose not in self._purposes:
            raise Refused(f"unknown connection purpose {purpose!r:.20}")
        if not self._config.rank < hello.rank < MEMBERS:
            raise Refused(f"member {hello.rank} must not call member {self._config.rank}")
        if self._config.tls and hello.rank != certified:
            name = self._config.names[hello.rank]
            raise Refused(f"the certificate of member {hello.rank} is not for {name}")

    def _record_refusal(self, error: Exception) -> None:
        """Record why a caller was sent away. It is unknown, so it may be any missing peer."""
        for rank in set(self._reasons) - set(self._met):
            if rank > self._config.rank:
                self._record_reason(rank, error, "a caller was refused: ")

    def _link_streams(self) -> dict[tuple[Rank, Rank], socket.socket]:
        streams = {}
        for rank, peer in self._met.items() if self._config.tls else ():
            caller, called = max(rank, self._config.rank), min(rank, self._config.rank)
            streams[caller, called] = peer.connections[_LINK_OF_CALLER].stream
            streams[called, caller] = peer.connections[_LINK_OF_CALLED].stream
        return streams

    def _link_address(self, hello: Hello) -> str:
        if hello.rank == self._config.rank:
            return f"{_bracketed(self._config.interface)}:{hello.link_port}"
        host, _ = split_address(self._config.addresses[hello.rank])
        return f"{_bracketed(host)}:{hello.link_port}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _explain(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return _NO_ANSWER
    if isinstance(error, ConnectionRefusedError):
        return _NOBODY
    return str(error) or type(error).__name__
