"""How three members meet before a session: all there, at the same audit, with fresh link ports.

SPU's own way of connecting says neither who is missing nor why, and needs ports agreed beforehand.
A member calls those of lower rank and answers those of higher rank; each says at which audit it is
and on which port its link will listen. Then all say that they are ready, and create the link.
There are two connections between each two: to watch each other, and for messages beside the link.
Under TLS there are two more, which carry the link itself, so that no other port is open to anyone.
"""

from __future__ import annotations

import hashlib
import queue
import secrets
import socket
import ssl
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from opfl_chain.mpc.connection import Connection, wait_readable
from opfl_chain.mpc.errors import AddressTaken, FrameInvalid, PeerUnreachable
from opfl_chain.mpc.greeting import PURPOSES, Hello, Refused
from opfl_chain.mpc.ranks import MEMBERS, Rank, peers_of
from opfl_chain.mpc.seat import Seat
from opfl_chain.mpc.tls import certificate_name
from opfl_chain.transport.addresses import split_address
from opfl_chain.transport.deadline import Deadline
from opfl_chain.transport.foreign_text import shown
from opfl_chain.transport.tls import names_of

_CALL_SECONDS = 3.0
"""For a peer to answer a call."""
_RETRY_SECONDS = 0.1
_POLL_SECONDS = 0.02
"""For calls that are being answered."""
_MAX_ANSWERING = 16
_LONGEST_AUDIT = 200
"""Of a peer's that we repeat."""
_LINK_OF_CALLER, _LINK_OF_CALLED = "link of the caller", "link of the called"
"""What further connections are for under TLS: SPU's link has one for each direction of requests."""

_NOT_CALLED = "it did not call us"
_NO_ANSWER = "it does not answer"
_NOBODY = "nobody listens there"
_AWAY = (_NOT_CALLED, _NO_ANSWER, _NOBODY)


@dataclass(frozen=True)
class Meeting:
    """Open connections to both peers, and what is needed to create the link."""

    connections: dict[Rank, Connection]
    """To watch."""
    streams: dict[Rank, socket.socket]
    """For messages."""
    link_id: str
    link_addresses: tuple[str, ...]
    """On loopback. Under TLS the link goes through a `Tunnel`, and has no addresses here."""
    link_streams: dict[tuple[Rank, Rank], socket.socket]
    """For the tunnel, by whose link makes the requests and whose answers them."""


@dataclass(frozen=True)
class _Peer:
    hello: Hello
    connections: dict[str, Connection]
    """By what they are for."""

    @property
    def watch(self) -> Connection:
        return self.connections["watch"]

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()


class Rendezvous:
    """One member's part in one meeting."""

    def __init__(self, seat: Seat, audit: str, link_port: int, deadline: Deadline) -> None:
        self._seat = seat
        self._hello = Hello(audit, seat.rank, link_port, secrets.token_hex(16))
        self._purposes = (*PURPOSES, *((_LINK_OF_CALLER, _LINK_OF_CALLED) if seat.tls else ()))
        self._deadline = deadline
        self._met: dict[Rank, _Peer] = {}
        self._ready: set[Rank] = set()
        self._gone: list[Rank] = []
        self._answered: queue.SimpleQueue[tuple[Hello, str, Connection]] = queue.SimpleQueue()
        self._parts: dict[tuple[Rank, str], tuple[Hello, Connection]] = {}
        self._over = False
        self._answering = threading.Semaphore(_MAX_ANSWERING)
        self._reasons = {
            rank: _NOT_CALLED if rank > seat.rank else _NO_ANSWER for rank in peers_of(seat.rank)
        }

    def meet(self) -> Meeting:
        """Wait for both peers. Raises PeerUnreachable for one that does not come."""
        try:
            with self._listen() as listener:
                self._gather(listener)
        except BaseException:
            for peer in self._met.values():
                peer.close()
            raise
        finally:
            self._over = True
            for _, connection in self._parts.values():
                connection.close()
            self._turn_away()
        met = [self._hello, *(peer.hello for peer in self._met.values())]
        hellos = sorted(met, key=lambda hello: hello.rank)
        together = "/".join([self._hello.audit, *(hello.nonce for hello in hellos)])
        return Meeting(
            {rank: peer.watch for rank, peer in self._met.items()},
            {rank: peer.connections["wire"].stream for rank, peer in self._met.items()},
            hashlib.sha256(together.encode()).hexdigest(),
            () if self._seat.tls else tuple(map(self._link_address, hellos)),
            self._link_streams(),
        )

    def _gather(self, listener: socket.socket) -> None:
        announced: set[Rank] = set()
        next_call = 0.0
        while self._ready != set(peers_of(self._seat.rank)):
            if self._deadline.passed:
                raise self._unreachable()
            if time.monotonic() >= next_call:
                for rank in range(self._seat.rank):
                    if rank not in self._met:
                        self._call(rank)
                next_call = time.monotonic() + _RETRY_SECONDS
            streams = [peer.watch.stream for peer in self._met.values()]
            wait_readable([listener, *streams], min(_POLL_SECONDS, self._deadline.remaining))
            self._answer_calls(listener)
            self._welcome()
            self._hear()
            announced &= set(self._met)
            if len(self._met) == MEMBERS - 1:
                for rank in set(self._met) - announced:
                    self._met[rank].watch.send_at_once({"ready": True})
                    announced.add(rank)

    def _unreachable(self) -> PeerUnreachable:
        # Of two that are missing, one may have left because the other never came, or had left.
        never = [rank for rank in self._reasons if rank not in self._gone]
        absent = [rank for rank in (*never, *self._gone) if rank not in self._met]
        if absent:
            rank, reason = absent[0], self._reasons[absent[0]]
        else:
            rank = next(rank for rank in self._met if rank not in self._ready)
            reason = "it came, and then did not meet the others"
        return PeerUnreachable(rank, self._seat.addresses[rank], self._deadline.seconds, reason)

    def _note(self, rank: Rank, error: Exception, before: str = "") -> None:
        """Why a peer is not here, unless we know better: that it is away, all who wait find out."""
        away = isinstance(error, (TimeoutError, ConnectionError, ssl.SSLEOFError))
        if not away or self._reasons[rank] in _AWAY:
            self._reasons[rank] = before + _explain(error)

    def _welcome(self) -> None:
        """Take in those who have called for every purpose."""
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
                    known.close()  # it started anew
                    self._ready.discard(hello.rank)
                self._met[hello.rank] = _Peer(hello, parts)

    def _turn_away(self) -> None:
        """Close the connections to those who called when the meeting was over."""
        with suppress(queue.Empty):
            while True:
                self._answered.get_nowait()[2].close()

    def _hear(self) -> None:
        """Note who is ready, and forget who has gone away again."""
        for rank, peer in list(self._met.items()):
            try:
                if any("ready" in header for header in peer.watch.arrived()):
                    self._ready.add(rank)
            except (ConnectionError, FrameInvalid) as error:
                peer.close()
                del self._met[rank]
                self._ready.discard(rank)
                self._gone.append(rank)
                self._reasons[rank] = f"it came and left: {error}"

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
                self._note(rank, error)
                return
            stack.pop_all()
        self._met[rank] = _Peer(hello, connections)

    def _call_deadline(self) -> Deadline:
        return Deadline(min(_CALL_SECONDS, self._deadline.remaining or 1e-3))

    def _connect(self, rank: Rank, deadline: Deadline) -> Connection:
        address = split_address(self._seat.addresses[rank])
        stream = socket.create_connection(address, timeout=deadline.remaining)
        tls = self._seat.tls
        if tls is None:
            return Connection(stream)
        context = tls.context(ssl.PROTOCOL_TLS_CLIENT)
        try:
            return Connection(context.wrap_socket(stream, server_hostname=certificate_name(rank)))
        except BaseException:
            stream.close()
            raise

    def _check(self, hello: Hello, rank: Rank) -> None:
        if hello.audit != self._hello.audit:
            theirs = shown(hello.audit, _LONGEST_AUDIT)
            raise Refused(f"it is at audit '{theirs}', and we at {self._hello.audit!r}")
        if hello.rank != rank:
            raise Refused(f"it says that it is member {hello.rank}")

    # --- answering

    def _listen(self) -> socket.socket:
        listener = self._seat.reserve_address()
        try:
            listener.listen()
        except OSError as error:
            listener.close()
            raise AddressTaken(self._seat.address, str(error)) from error
        listener.setblocking(False)
        return listener

    def _answer_calls(self, listener: socket.socket) -> None:
        """Take calls, each in a thread, so that a caller that says nothing keeps nobody waiting."""
        while True:
            try:
                stream, _ = listener.accept()
            except OSError:
                return
            if not self._answering.acquire(blocking=False):
                stream.close()
                continue
            threading.Thread(target=self._answer, args=(stream,), daemon=True).start()

    def _answer(self, stream: socket.socket) -> None:
        deadline = self._call_deadline()
        try:
            stream.settimeout(deadline.remaining)
            if self._seat.tls:
                context = self._seat.tls.context(ssl.PROTOCOL_TLS_SERVER)
                stream = context.wrap_socket(stream, server_side=True)
            connection = Connection(stream)
            document = connection.receive(deadline)
            hello, purpose = Hello.from_json(document), str(document.get("purpose"))
            try:
                self._check_caller(hello, purpose, stream)
            except Refused as refusal:
                connection.send({"refused": str(refusal)}, deadline)
                raise
            connection.send(self._hello.to_json(purpose), deadline)
            self._check(hello, hello.rank)  # the caller finds the same in our greeting
        except (OSError, FrameInvalid, Refused) as error:
            stream.close()
            # Whoever it was, it may have been one of those who are missing.
            for rank in set(self._reasons) - set(self._met):
                if rank > self._seat.rank:
                    self._note(rank, error, "a caller was refused: ")
            return
        finally:
            self._answering.release()
        self._answered.put((hello, purpose, connection))
        if self._over:  # nobody else looks there any more
            self._turn_away()

    def _check_caller(self, hello: Hello, purpose: str, stream: socket.socket) -> None:
        if purpose not in self._purposes:
            raise Refused(f"there are no connections for {purpose!r:.20}")
        if not self._seat.rank < hello.rank < MEMBERS:
            raise Refused(f"member {hello.rank} does not call member {self._seat.rank}")
        if isinstance(stream, ssl.SSLSocket):
            name = certificate_name(hello.rank)
            if name not in names_of(stream):
                raise Refused(f"the certificate of member {hello.rank} is not for {name}")

    def _link_streams(self) -> dict[tuple[Rank, Rank], socket.socket]:
        streams = {}
        for rank, peer in self._met.items() if self._seat.tls else ():
            caller, called = max(rank, self._seat.rank), min(rank, self._seat.rank)
            streams[caller, called] = peer.connections[_LINK_OF_CALLER].stream
            streams[called, caller] = peer.connections[_LINK_OF_CALLED].stream
        return streams

    def _link_address(self, hello: Hello) -> str:
        if hello.rank == self._seat.rank:
            return f"{_bracketed(self._seat.interface)}:{hello.link_port}"
        host, _ = split_address(self._seat.addresses[hello.rank])
        return f"{_bracketed(host)}:{hello.link_port}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _explain(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return _NO_ANSWER
    if isinstance(error, ConnectionRefusedError):
        return _NOBODY
    return str(error) or type(error).__name__
