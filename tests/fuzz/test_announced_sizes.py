"""Announcing a large size takes little memory at the reader."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fuzz_target import RecordedStream
from message_targets import encode_frames, encode_message
from protocol_targets import share_package
from targets import TARGETS
from value_targets import array_of, share_of_shape, stored

from opfl_chain.mpc.session.channels import LARGEST_MESSAGE
from opfl_chain.mpc.session.greeting import Connection
from opfl_chain.mpc.session.messages import HUGE, Arrival, Frame
from opfl_chain.protocol.commitments import Scheme

MOST_BYTES = 32 << 20
PACKAGE = share_package(Scheme.SHARES, 1)
ANNOUNCEMENTS = {
    "frames": struct.pack(">4sIQ", b"OPFL", 0, 1 << 63),
    "stream-of-frames": struct.pack(">4sIQ", b"OPFL", 2, HUGE - 2) + b"{}",
    "message": struct.pack(">Q", LARGEST_MESSAGE) + b"x",
    "value": array_of("<i8", [1 << 40]),
    "executable": stored(b"", missing=1 << 62),
    "share-package": PACKAGE[:7] + b"\xff" * 8 + PACKAGE[15:],
    "share-of-spu": share_of_shape(1 << 40),
    "verdict": struct.pack(">I", 0) + struct.pack(">I", 5) + b"\xff\xff\xff\xff\1",
}


@contextmanager
def memory_is_limited() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ANNOUNCEMENTS)
def test_an_announcement_takes_little_memory(name: str) -> None:
    with memory_is_limited():
        TARGETS[name].accepts(ANNOUNCEMENTS[name])


@pytest.mark.parametrize("size", [0, 1, 1 << 24, (1 << 24) + 1, (1 << 25) + 1])
def test_announced_data_arrives_whole(size: int) -> None:
    content = bytes(range(251)) * (size // 251 + 1)
    stream, arrival = RecordedStream(content), Arrival(size)
    while not arrival.complete:
        arrival.receive_from(stream)
    assert arrival.data == content[:size]
    assert TARGETS["message"].accepts(encode_message(content[:size]))


class Flood:
    """A socket that always has more to read."""

    def __init__(self) -> None:
        self.reads = 0

    def recv(self, size: int) -> bytes:
        self.reads += 1
        assert self.reads < 1000
        return encode_frames([Frame({"pulse": True})] * 10)

    def setsockopt(self, *option: int) -> None:
        """Ignore options."""

    def setblocking(self, flag: bool) -> None:
        """Ignore the setting: it never waits."""


def test_a_peer_that_never_stops_sending_does_not_keep_us_reading() -> None:
    frames = Connection(Flood()).arrived()
    assert frames[0] == {"pulse": True}
