"""SPU's link between machines, inside connections of ours.

SPU's link has a TLS of its own, and cannot be used with it: where packets have 1500 bytes, as they
do off loopback, a member misses in every tenth run that a message has come, and waits for ever. Nor
does it check whose certificate it is shown. So the link speaks plainly to Unix sockets, in a folder
that only this user may enter, and a thread carries what it says through connections that were made
and authenticated when the members met.
"""

from __future__ import annotations

import select
import shutil
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from opfl_chain.mpc.errors import LinkFailed, MpcError, PeerLost, ProgramFailed
from opfl_chain.mpc.ranks import MEMBERS, Rank, peers_of
from opfl_chain.mpc.seat import Seat

_BUFFER_BYTES = 1 << 18
_MOST_STEPS = 32
"""Of one flow at a time, so that one which never pauses does not hold up the others."""
_OPEN_SECONDS = 0.005
"""Between looks whether SPU has come to its sockets, which takes a moment at the start."""
_STOP_SECONDS = 2.0
_BLOCKED = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_NOT_YET = (BlockingIOError, FileNotFoundError, ConnectionRefusedError)


class Flow:
    """What one socket says to another. Reads on only when all that was read has been taken, so a
    reader that is slow slows the writer at the far end, and little is kept here.
    """

    def __init__(self, source: socket.socket, sink: socket.socket, peer: Rank) -> None:
        self.ends = self.source, self.sink = source, sink
        self.peer = peer
        self.ended = False
        """There is no more to come, and all that came has been taken."""
        self._room = memoryview(bytearray(_BUFFER_BYTES))
        self.waiting = self._room[:0]
        """Read, and not yet taken."""

    def advance(self) -> bool:
        """Carry what can be carried without waiting; whether there may be more."""
        try:
            for _ in range(_MOST_STEPS):
                if self.waiting:
                    self.waiting = self.waiting[self.sink.send(self.waiting) :]
                elif count := self.source.recv_into(self._room):
                    self.waiting = self._room[:count]
                else:
                    self.ended = True
                    return False
        except _BLOCKED:
            return False
        except OSError:
            self.ended = True
            return False
        return True


class Tunnel:
    """A thread that owns the streams. `addresses` are what SPU's link is told that they are.

    `on_failure` is called from that thread, when a stream ends that should not.
    """

    def __init__(
        self,
        seat: Seat,
        streams: Mapping[tuple[Rank, Rank], socket.socket],
        on_failure: Callable[[MpcError], None],
    ) -> None:
        self._seat = seat
        self._unopened = dict(streams)
        self._on_failure = on_failure
        self._flows: list[Flow] = []
        self._closing = False
        self._folder = Path(tempfile.mkdtemp(prefix="opfl-link-"))
        try:
            self._listeners = {peer: _listener(self._path(peer)) for peer in peers_of(seat.rank)}
        except OSError as error:
            self.forget_folder()
            raise LinkFailed(str(self._folder), str(error)) from error
        self._alarm, self._bell = socket.socketpair()
        self.addresses = tuple(f"unix:{self._path(rank)}" for rank in range(MEMBERS))
        self._thread = threading.Thread(target=self._carry, name="tunnel", daemon=True)
        self._thread.start()

    def expect_end(self) -> None:
        """From now on it is no failure that a stream ends."""
        self._closing = True

    def close(self) -> None:
        """End the thread, and with it all connections."""
        self._closing = True
        self._bell.close()
        self._thread.join(_STOP_SECONDS)

    def forget_folder(self) -> None:
        """Nobody looks there once the link is connected, and the sockets do without it.

        A process that is killed in the moment before that leaves it behind.
        """
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, rank: Rank) -> Path:
        return self._folder / str(rank)

    def _carry(self) -> None:
        busy: list[Flow] = []
        try:
            while True:
                busy += self._open()
                pause = 0.0 if busy else _OPEN_SECONDS if self._unopened else None
                reading = [flow.source for flow in self._flows if not flow.waiting]
                writing = [flow.sink for flow in self._flows if flow.waiting]
                came, taken, _ = select.select([self._alarm, *reading], writing, [], pause)
                if self._alarm in came:
                    return
                ready = [
                    flow
                    for flow in self._flows
                    if flow in busy or (flow.sink in taken if flow.waiting else flow.source in came)
                ]
                busy = [flow for flow in ready if flow.advance()]
                for flow in ready:
                    if flow.ended and flow in self._flows:
                        self._end(flow)
        except Exception as error:  # noqa: BLE001 - nobody else would notice that we stopped
            self._on_failure(ProgramFailed("the tunnel", repr(error)))
        finally:
            self._close_all()

    def _open(self) -> list[Flow]:
        """Join the streams to our link where it has come to call a peer, or to be called."""
        opened: list[Flow] = []
        for (caller, called), stream in list(self._unopened.items()):
            ours = caller == self._seat.rank
            try:
                plain = self._accept(called) if ours else _call(self._path(self._seat.rank))
            except _NOT_YET:
                continue
            stream.setblocking(False)
            plain.setblocking(False)
            peer = called if ours else caller
            opened += [Flow(plain, stream, peer), Flow(stream, plain, peer)]
            del self._unopened[caller, called]
        self._flows += opened
        if opened and not self._unopened:
            self.forget_folder()
        return opened

    def _accept(self, peer: Rank) -> socket.socket:
        plain, _ = self._listeners[peer].accept()
        self._listeners[peer].close()
        return plain

    def _end(self, ended: Flow) -> None:
        """The end of one direction is that of the other: SPU's link leaves none half open."""
        self._flows = [flow for flow in self._flows if flow.source not in ended.ends]
        for end in ended.ends:
            end.close()
        if not self._closing:
            self._on_failure(PeerLost(ended.peer, self._seat.addresses[ended.peer]))

    def _close_all(self) -> None:
        flowing = [flow.source for flow in self._flows]
        for each in (*flowing, *self._unopened.values(), *self._listeners.values(), self._alarm):
            each.close()
        self.forget_folder()


def _listener(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.setblocking(False)
    try:
        listener.bind(str(path))
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def _call(path: Path) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX)
    stream.setblocking(False)
    try:
        stream.connect(str(path))
    except BaseException:
        stream.close()
        raise
    return stream
