"""Messages between members beside SPU's link, for our own procedures.

A round trip over SPU's link takes milliseconds from Python; over a plain socket it takes a tenth.
Sending never blocks: data that the kernel does not accept at once is queued, and sent while this
member waits to receive. So members that all send first and then receive cannot deadlock, however
long the messages.
"""

from __future__ import annotations

import queue
import select
import socket
import ssl
import struct
from collections import deque
from collections.abc import Mapping
from typing import Final, Protocol

from opfl_chain.mpc.session.errors import FrameInvalid
from opfl_chain.mpc.session.messages import Arrival
from opfl_chain.mpc.session.ranks import MEMBERS, Rank, peers_of
from opfl_chain.transport.deadline import Deadline

LARGEST_MESSAGE: Final = 1 << 31
_LENGTH: Final = struct.Struct(">Q")
_JOIN_BYTES: Final = 1 << 16
_BLOCKED = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Channels(Protocol):
    """Ordered, reliable messages to and from both peers."""

    def send(self, rank: Rank, data: bytes) -> None: ...

    def receive(self, rank: Rank) -> bytes:
        """Return the next message of a peer.

        Raises TimeoutError, ConnectionError if the peer disconnected, FrameInvalid for a message
        that is too long.
        """

    def flush(self) -> None:
        """Wait until all queued data has been passed to the kernel."""


class SocketChannels:
    """Messages over a connected socket to each peer. Used by one thread."""

    def __init__(self, streams: Mapping[Rank, socket.socket], deadline: Deadline) -> None:
        self._streams = dict(streams)
        self._deadline = deadline
        self._waiting: dict[Rank, deque[memoryview]] = {rank: deque() for rank in streams}
        for stream in streams.values():
            stream.setblocking(False)

    def send(self, rank: Rank, data: bytes) -> None:
        length = _LENGTH.pack(len(data))
        # A short message goes out in one packet; a long one is not copied.
        parts = [length + data] if len(data) <= _JOIN_BYTES else [length, data]
        self._waiting[rank].extend(memoryview(part) for part in parts)
        self._push(rank)

    def receive(self, rank: Rank) -> bytes:
        (size,) = _LENGTH.unpack(self._read(rank, _LENGTH.size))
        if size > LARGEST_MESSAGE:
            raise FrameInvalid(f"the message has {size} bytes, more than {LARGEST_MESSAGE}")
        return bytes(self._read(rank, size))

    def flush(self) -> None:
        while any(self._waiting.values()):
            self._wait([])

    def close(self) -> None:
        for stream in self._streams.values():
            stream.close()

    def _read(self, rank: Rank, size: int) -> bytearray:
        stream, arrival = self._streams[rank], Arrival(size)
        while not arrival.complete:
            try:
                arrival.receive_from(stream)
            except _BLOCKED:
                self._wait([stream])
        return arrival.data

    def _wait(self, readable: list[socket.socket]) -> None:
        """Wait until a stream is ready or the deadline passes, and send queued data."""
        writable = [self._streams[rank] for rank, parts in self._waiting.items() if parts]
        ready, free, _ = select.select(readable, writable, [], self._deadline.remaining)
        if not ready and not free:
            raise TimeoutError
        for rank, stream in self._streams.items():
            if stream in free:
                self._push(rank)

    def _push(self, rank: Rank) -> None:
        parts, stream = self._waiting[rank], self._streams[rank]
        try:
            while parts:
                count = stream.send(parts[0])
                if count == len(parts[0]):
                    parts.popleft()
                else:
                    parts[0] = parts[0][count:]
        except _BLOCKED:
            return


class MemoryChannels:
    """Messages between threads of one process."""

    def __init__(
        self,
        rank: Rank,
        queues: Mapping[tuple[Rank, Rank], queue.SimpleQueue[bytes]],
        seconds: float,
    ) -> None:
        self._rank = rank
        self._queues = queues
        self._seconds = seconds

    @classmethod
    def committee(cls, seconds: float) -> list[MemoryChannels]:
        queues: dict[tuple[Rank, Rank], queue.SimpleQueue[bytes]] = {
            (sender, receiver): queue.SimpleQueue()
            for sender in range(MEMBERS)
            for receiver in peers_of(sender)
        }
        return [cls(rank, queues, seconds) for rank in range(MEMBERS)]

    def send(self, rank: Rank, data: bytes) -> None:
        self._queues[self._rank, rank].put(bytes(data))

    def receive(self, rank: Rank) -> bytes:
        try:
            return self._queues[rank, self._rank].get(timeout=self._seconds)
        except queue.Empty:
            raise TimeoutError from None

    def flush(self) -> None:
        return
