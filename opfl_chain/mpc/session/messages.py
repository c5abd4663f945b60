"""Length-prefixed messages on a stream: a JSON object and any number of byte strings.

Used between a member and its SPU process, and between members for meetings and heartbeats.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from opfl_chain.mpc.session.errors import FrameInvalid
from opfl_chain.transport.deadline import Deadline

_MAGIC: Final = b"OPFL"
_PREFIX: Final = struct.Struct(">4sIQ")
"""Magic, length of the JSON text, length of the body behind it."""

SMALL: Final = 1 << 16
"""Size limit of messages from other machines."""
HUGE: Final = 1 << 40
_FIRST_BYTES: Final = 1 << 24
"""Initial buffer size, enough for most messages."""

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True)
class Frame:
    header: dict[str, Any]
    blobs: tuple[Buffer, ...] = ()


def pack(frame: Frame) -> list[Buffer]:
    """Return a frame as a sequence of buffers to send."""
    blobs = [memoryview(blob).cast("B") for blob in frame.blobs]
    sizes = [len(blob) for blob in blobs]
    text = json.dumps({"header": frame.header, "blobs": sizes}).encode()
    return [_PREFIX.pack(_MAGIC, len(text), sum(sizes)) + text, *blobs]


def send_frame(stream: socket.socket, frame: Frame, deadline: Deadline | None) -> None:
    for buffer in pack(frame):
        _limit(stream, deadline)
        stream.sendall(buffer)


def receive_frame(stream: socket.socket, deadline: Deadline | None, limit: int) -> Frame:
    """Return the next frame. Raises TimeoutError, ConnectionError at the end, and FrameInvalid."""
    text_size, body_size = _sizes(_receive(stream, _PREFIX.size, deadline), limit)
    text = _receive(stream, text_size, deadline)
    return _frame(text, _receive(stream, body_size, deadline))


class Arrival:
    """A message of announced size. Its buffer grows as data arrives, so a lie costs no memory."""

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
        with memoryview(self.data)[self._received :] as free:
            count = stream.recv_into(free)
        if not count:
            raise ConnectionError("the other end closed the connection")
        self._received += count


class FrameBuffer:
    """Incremental parser of frames."""

    def __init__(self, limit: int = SMALL) -> None:
        self._limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Add bytes and yield the frames that they complete."""
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
        raise FrameInvalid(f"the message begins with {bytes(prefix[:4])!r} instead of {_MAGIC!r}")
    if text_size + body_size > limit:
        raise FrameInvalid(f"the message has {text_size + body_size} bytes, more than {limit}")
    return text_size, body_size


def _frame(text: Buffer, body: Buffer) -> Frame:
    try:
        document = json.loads(bytes(text))
        header, sizes = document["header"], document["blobs"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FrameInvalid(f"the message header is malformed: {error}") from error
    if not isinstance(header, dict) or not _are_sizes(sizes) or sum(sizes) != len(body):
        raise FrameInvalid("the message header must be an object, with the sizes of all blobs")
    blobs, start = [], 0
    for size in sizes:
        blobs.append(memoryview(body)[start : start + size])
        start += size
    return Frame(header, tuple(blobs))


def _are_sizes(sizes: object) -> bool:
    return isinstance(sizes, list) and all(type(size) is int and size >= 0 for size in sizes)


def _limit(stream: socket.socket, deadline: Deadline | None) -> None:
    """Set the stream's timeout: none without a deadline, almost zero once it has passed."""
    stream.settimeout(None if deadline is None else deadline.remaining or 1e-6)


def _receive(stream: socket.socket, size: int, deadline: Deadline | None) -> bytearray:
    arrival = Arrival(size)
    while not arrival.complete:
        _limit(stream, deadline)
        arrival.receive_from(stream)
    return arrival.data
