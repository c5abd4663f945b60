"""A connection that a peer made to us, every use of which is over by a deadline.

A timeout of a socket starts anew with every byte, so that a peer who drips them would hold on for
ever; and `sendall` of TLS is no better. Here each call gets what is left of the whole.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
from typing import Final

from opfl_chain.transport.deadline import Deadline

_CHUNK_BYTES: Final = 1 << 16
_END_OF_HEAD: Final = re.compile(rb"\r?\n\r?\n")
_LINGER_SECONDS: Final = 2.0


class HeadTooLarge(Exception):
    """Request line and headers are longer than allowed."""


class Stream:
    """Used by one thread; only `cut` is for others."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._received = b""

    def secure(self, context: ssl.SSLContext, deadline: Deadline) -> None:
        """The server's half of a TLS handshake."""
        self._wait_until(deadline)
        wrapped = context.wrap_socket(self._socket, server_side=True, do_handshake_on_connect=False)
        self._socket = wrapped
        wrapped.do_handshake()

    def read_head(self, most_bytes: int, deadline: Deadline) -> bytes:
        """All up to the empty line that ends the headers, and with it; nothing if nothing came."""
        searched = 0
        while True:
            end = _END_OF_HEAD.search(self._received, max(0, searched - 3))
            if end and end.end() <= most_bytes:
                head, self._received = self._received[: end.end()], self._received[end.end() :]
                return head
            if len(self._received) > most_bytes:
                raise HeadTooLarge
            searched = len(self._received)
            chunk = self._receive(_CHUNK_BYTES, deadline)
            if not chunk:
                return b""
            self._received += chunk

    def read_body(self, size: int, deadline: Deadline) -> bytes:
        """Exactly so many bytes. Raises ConnectionError if the peer stops before."""
        body = bytearray(self._received[:size])
        while len(body) < size:
            chunk = self._receive(min(size - len(body), _CHUNK_BYTES), deadline)
            if not chunk:
                raise ConnectionAbortedError(f"it ended after {len(body)} of {size} bytes")
            body += chunk
        return bytes(body)

    def write(self, data: bytes, deadline: Deadline) -> None:
        rest = memoryview(data)
        while rest:
            self._wait_until(deadline)
            rest = rest[self._socket.send(rest[:_CHUNK_BYTES]) :]

    def drain(self) -> None:
        """Let a peer that is still sending read our answer: if we closed now, what it has not been
        able to send would make its end forget what it has received.
        """
        deadline = Deadline(_LINGER_SECONDS)
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_WR)
            self._wait_until(deadline)
            while socket.socket.recv(self._socket, _CHUNK_BYTES):
                self._wait_until(deadline)

    def cut(self) -> None:
        """End the connection under whoever uses it."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

    def _receive(self, most_bytes: int, deadline: Deadline) -> bytes:
        self._wait_until(deadline)
        return self._socket.recv(most_bytes)

    def _wait_until(self, deadline: Deadline) -> None:
        if deadline.passed:
            raise TimeoutError(f"it was not over after {deadline.seconds:.3g} s")
        self._socket.settimeout(deadline.remaining)
