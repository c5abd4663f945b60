"""The connection between two members: greetings when they meet, then heartbeats."""

from __future__ import annotations

import re
import select
import socket
import ssl
import time
from dataclasses import dataclass
from typing import Final

from opfl_chain.mpc.session.messages import (
    SMALL,
    Frame,
    FrameBuffer,
    pack,
    receive_frame,
    send_frame,
)
from opfl_chain.mpc.session.ranks import Rank
from opfl_chain.transport.deadline import Deadline

_READ_BYTES = 1 << 16
_MAX_READS = 16
"""Reads per call, so that a peer that never stops sending cannot keep us reading."""
HEARTBEATS: Final = "watch"
MESSAGES: Final = "wire"
PURPOSES: Final = (HEARTBEATS, MESSAGES)
"""Purposes of connections, as greetings name them: heartbeats, and messages beside SPU's link."""
_VERSION: Final = 1
_PORTS: Final = range(1, 1 << 16)
_NONCE: Final = re.compile(r"[0-9a-f]{32}")
_MAX_REASON_LENGTH: Final = 1000


class Connection:
    """Small frames in both directions. Used by one thread at a time."""

    def __init__(self, stream: socket.socket) -> None:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = stream
        self.heard = time.monotonic()
        """Time of the last data from the other end."""
        self._buffer = FrameBuffer()

    def send(self, header: dict[str, object], deadline: Deadline) -> None:
        send_frame(self.stream, Frame(header), deadline)

    def receive(self, deadline: Deadline) -> dict[str, object]:
        """Wait for the next frame and return its header. Do not mix with `arrived`."""
        return receive_frame(self.stream, deadline, SMALL).header

    def send_at_once(self, header: dict[str, object]) -> None:
        """Send without blocking; drop the frame if it cannot be sent. Raises OSError if closed."""
        self.stream.setblocking(False)
        try:
            self.stream.sendall(b"".join(pack(Frame(header))))
        except (BlockingIOError, ssl.SSLWantWriteError):
            return  # the other end has stopped reading, and will be reported as stalled

    def arrived(self) -> list[dict[str, object]]:
        """Return the frames that have arrived, without blocking. ConnectionError at the end."""
        self.stream.setblocking(False)
        frames: list[dict[str, object]] = []
        for _ in range(_MAX_READS):
            try:
                data = self.stream.recv(_READ_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError):
                return frames
            except OSError as error:
                raise ConnectionError(str(error)) from error
            if not data:
                if frames:
                    return frames  # the next call finds the end again
                raise ConnectionError("the other end closed the connection")
            self.heard = time.monotonic()
            frames += [frame.header for frame in self._buffer.feed(data)]
        return frames

    def close(self) -> None:
        self.stream.close()


def wait_readable(streams: list[socket.socket], seconds: float) -> None:
    """Wait until a stream is readable, for at most `seconds`."""
    select.select(streams, [], [], max(0.0, seconds))


class Refused(Exception):
    """The other end is not a peer in this audit."""


@dataclass(frozen=True)
class Hello:
    """A member's greeting."""

    audit: str
    rank: Rank
    link_port: int
    nonce: str
    """New for each attempt to meet."""

    def to_json(self, purpose: str) -> dict[str, object]:
        return {
            "version": _VERSION,
            "purpose": purpose,
            "audit": self.audit,
            "rank": self.rank,
            "link_port": self.link_port,
            "nonce": self.nonce,
        }

    @classmethod
    def from_json(cls, document: dict[str, object]) -> Hello:
        if "refused" in document:
            raise Refused(_printable(document["refused"]))
        if document.get("version") != _VERSION:
            raise Refused(f"its version is {document.get('version')!r:.20}, ours is {_VERSION}")
        hello = (document.get(name) for name in ("audit", "rank", "link_port", "nonce"))
        match tuple(hello):
            case (str(audit), int(rank), int(port), str(nonce)) if (
                bool not in (type(rank), type(port)) and port in _PORTS and _NONCE.fullmatch(nonce)
            ):
                return cls(audit, rank, port, nonce)
        raise Refused("its greeting is malformed")


def _printable(reason: object) -> str:
    """Return a stranger's reason if it is printable on one line, else a placeholder."""
    if not isinstance(reason, str) or not reason.isprintable():
        return "it refused us without a printable reason"
    return reason[:_MAX_REASON_LENGTH]
