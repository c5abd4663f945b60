"""Messages on a stream: a JSON object and any number of byte strings, with their lengths in front.

Used between a member and its SPU process, and between members to meet and to watch each other.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from opfl_chain.mpc.errors import FrameInvalid
from opfl_chain.transport.deadline import Deadline

_MAGIC: Final = b"OPFL"
_PREFIX: Final = struct.Struct(">4sIQ")
"""Magic, length of the JSON text, length of all that follows it."""

SMALL: Final = 1 << 16
"""The most that is accepted from outside."""
HUGE: Final = 1 << 40
_FIRST_BYTES: Final = 1 << 24
"""Room for most messages, which then need not grow."""

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True)
class Frame:
    header: dict[str, Any]
    blobs: tuple[Buffer, ...] = ()


def pack(frame: Frame) -> list[Buffer]:
    """A frame as buffers to send one after the other."""
    blobs = [memoryview(blob).cast("B") for blob in frame.blobs]
    sizes = [len(blob) for blob in blobs]
    text = json.dumps({"header": frame.header, "blobs": sizes}).encode()
    return [_PREFIX.pack(_MAGIC, len(text), sum(sizes)) + text, *blobs]


def send_frame(stream: socket.socket, frame: Frame, deadline: Deadline | None) -> None:
    for buffer in pack(frame):
        _limit(stream, deadline)
        stream.sendall(buffer)


def receive_frame(stream: socket.socket, deadline: Deadline | None, limit: int) -> Frame:
    """The next frame. Raises TimeoutError, ConnectionError at the end, and FrameInvalid."""
    text_size, body_size = _sizes(_receive(stream, _PREFIX.size, deadline), limit)
    text = _receive(stream, text_size, deadline)
    return _frame(text, _receive(stream, body_size, deadline))


class Arrival:
    """A message of an announced size. Memory is taken as it arrives, and little before."""

    def __init__(self, size: int) -> None:
        self.data = bytearray(min(size, _FIRST_BYTES))
        self._size = size
        self._received = 0

    @property
    def complete(self) -> bool:
        return self._received == self._size

    def receive_from(self, stream: socket.socket) -> None:
        """Read once from the stream. Raises ConnectionError at its end."""
        if self._received == len(self.data):
            self.data += bytes(min(self._received, self._size - self._received))
        with memoryview(self.data)[self._received :] as room:
            count = stream.recv_into(room)
        if not count:
            raise ConnectionError("the other end closed the connection")
        self._received += count


class FrameBuffer:
    """Frames of a stream that is read as bytes arrive."""

    def __init__(self, limit: int = SMALL) -> None:
        self._limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take in bytes and yield the frames that they complete."""
        self._data += data
        while len(self._data) >= _PREFIX.size:
            text_size, body_size = _sizes(self._data[: _PREFIX.size], self._limit)
            middle = _PREFIX.size + text_size
            end = middle + body_size
            if len(self._data) < end:
                return
            text, body = self._data[_PREFIX.size : middle], self._data[middle:end]
            del self._data[:end]
            yield _frame(text, body)


def _sizes(prefix: Buffer, limit: int) -> tuple[int, int]:
    magic, text_size, body_size = _PREFIX.unpack(prefix)
    if magic != _MAGIC:
        raise FrameInvalid(f"it begins with {bytes(prefix[:4])!r}, which is none of our messages")
    if text_size + body_size > limit:
        raise FrameInvalid(f"it has {text_size + body_size} bytes, more than {limit}")
    return text_size, body_size


def _frame(text: Buffer, body: Buffer) -> Frame:
    try:
        document = json.loads(bytes(text))
        header, sizes = document["header"], document["blobs"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FrameInvalid(f"its header is malformed: {error}") from error
    if not isinstance(header, dict) or not _are_sizes(sizes) or sum(sizes) != len(body):
        raise FrameInvalid("its header does not describe it")
    blobs, start = [], 0
    for size in sizes:
        blobs.append(memoryview(body)[start : start + size])
        start += size
    return Frame(header, tuple(blobs))


def _are_sizes(sizes: object) -> bool:
    return isinstance(sizes, list) and all(type(size) is int and size >= 0 for size in sizes)


def _limit(stream: socket.socket, deadline: Deadline | None) -> None:
    """Without a deadline a call blocks for as long as it takes; at it, it fails at once."""
    stream.settimeout(None if deadline is None else deadline.remaining or 1e-6)


def _receive(stream: socket.socket, size: int, deadline: Deadline | None) -> bytearray:
    arrival = Arrival(size)
    while not arrival.complete:
        _limit(stream, deadline)
        arrival.receive_from(stream)
    return arrival.data
