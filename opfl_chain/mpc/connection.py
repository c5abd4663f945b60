"""A connection between two members, over which they meet and then watch each other."""

from __future__ import annotations

import select
import socket
import ssl
import time

from opfl_chain.mpc.frames import SMALL, Frame, FrameBuffer, pack, receive_frame, send_frame
from opfl_chain.transport.deadline import Deadline

_READ_BYTES = 1 << 16
_MOST_READS = 16
"""At a time, so that an end that never stops sending does not keep us reading."""


class Connection:
    """Small frames in both directions. Used by one thread at a time."""

    def __init__(self, stream: socket.socket) -> None:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = stream
        self.heard = time.monotonic()
        """When the other end last said something."""
        self._buffer = FrameBuffer()

    def send(self, header: dict[str, object], deadline: Deadline) -> None:
        send_frame(self.stream, Frame(header), deadline)

    def receive(self, deadline: Deadline) -> dict[str, object]:
        """The next frame, for the one that is awaited. Not to be mixed with `arrived`."""
        return receive_frame(self.stream, deadline, SMALL).header

    def send_at_once(self, header: dict[str, object]) -> None:
        """Send if the other end takes it, without waiting. Raises OSError if it is gone."""
        self.stream.setblocking(False)
        try:
            self.stream.sendall(b"".join(pack(Frame(header))))
        except (BlockingIOError, ssl.SSLWantWriteError):
            return  # it has not read for long: it will be found silent

    def arrived(self) -> list[dict[str, object]]:
        """The frames that are here, without waiting. Raises ConnectionError at the end."""
        self.stream.setblocking(False)
        frames: list[dict[str, object]] = []
        for _ in range(_MOST_READS):
            try:
                data = self.stream.recv(_READ_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError):
                return frames
            except OSError as error:
                raise ConnectionError(str(error)) from error
            if not data:
                if frames:
                    return frames  # the end is found again by the next call
                raise ConnectionError("the other end closed the connection")
            self.heard = time.monotonic()
            frames += [frame.header for frame in self._buffer.feed(data)]
        return frames

    def close(self) -> None:
        self.stream.close()


def wait_readable(streams: list[socket.socket], seconds: float) -> None:
    """Return when a stream has something to read, or after so many seconds."""
    select.select(streams, [], [], max(0.0, seconds))
