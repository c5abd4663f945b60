"""A connection where every operation has a deadline.

A socket's timeout restarts with every byte, so a peer that sends byte by byte could hold the
connection for ever; TLS `sendall` has the same flaw. Here each call gets the remaining time.
"""

from __future__ import annotations

import contextlib
import re
import select
import socket
import ssl
import time
from typing import Final

from opfl_chain.transport.deadline import Deadline
from opfl_chain.transport.pool import is_ready
from opfl_chain.transport.tls import names_of

_CHUNK_BYTES: Final = 1 << 16
_END_OF_HEAD: Final = re.compile(rb"\r?\n\r?\n")
_LINGER_SECONDS: Final = 2.0


class HeadTooLarge(Exception):
    """Request line and headers are longer than allowed."""


class Stream:
    """A connection used by one thread. `cut` and the properties of idleness are thread-safe."""

    def __init__(self, connection: socket.socket) -> None:
        self.active_at = 0.0
        """The time of the last bytes in either direction; 0 if the peer never sent any."""
        self._socket = connection
        self._received = b""
        self._sending = False
        self._is_cut = False

    @property
    def waits_for_us(self) -> bool:
        """True if bytes of the peer are unread, or it takes more than we have sent."""
        return is_ready(self._socket, select.POLLOUT if self._sending else select.POLLIN)

    @property
    def peer_name(self) -> str | None:
        """The name in the peer's certificate, if it has shown one of our authority."""
        if not isinstance(self._socket, ssl.SSLSocket):
            return None
        return min(names_of(self._socket), default=None)

    def touch(self) -> None:
        """Note activity."""
        self.active_at = time.monotonic()

    def secure(self, context: ssl.SSLContext, deadline: Deadline) -> None:
        """Perform the server's side of a TLS handshake."""
        self._wait_until(deadline)
        if not self._socket.recv(1, socket.MSG_PEEK):
            raise ConnectionAbortedError("the peer closed before it sent anything")
        self.touch()
        wrapped = context.wrap_socket(self._socket, server_side=True, do_handshake_on_connect=False)
        self._socket = wrapped
        if self._is_cut:  # before this, `cut` may have found the socket that was wrapped
            self.cut()
        wrapped.do_handshake()
        self.touch()

    def read_head(self, most_bytes: int, deadline: Deadline) -> bytes:
        """Return everything through the empty line after the headers; empty if the peer closed."""
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
        """Return exactly `size` bytes. Raises ConnectionError if the peer closes earlier."""
        body = bytearray(self._received[:size])
        while len(body) < size:
            chunk = self._receive(min(size - len(body), _CHUNK_BYTES), deadline)
            if not chunk:
                raise ConnectionAbortedError(f"the peer closed after {len(body)} of {size} bytes")
            body += chunk
        return bytes(body)

    def write(self, data: bytes, deadline: Deadline) -> None:
        rest = memoryview(data)
        self._sending = True
        while rest:
            self._wait_until(deadline)
            rest = rest[self._socket.send(rest[:_CHUNK_BYTES]) :]
            self.touch()
        self._sending = False

    def drain(self) -> None:
        """Discard what the peer still sends, so that it can read our response: closing with unread
        data would reset the connection and lose the response.
        """
        deadline = Deadline(_LINGER_SECONDS)
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_WR)
            self._wait_until(deadline)
            while socket.socket.recv(self._socket, _CHUNK_BYTES):
                self._wait_until(deadline)

    def cut(self) -> None:
        """Shut the connection down while another thread uses it."""
        self._is_cut = True
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

    def _receive(self, most_bytes: int, deadline: Deadline) -> bytes:
        self._wait_until(deadline)
        chunk = self._socket.recv(most_bytes)
        self.touch()
        return chunk

    def _wait_until(self, deadline: Deadline) -> None:
        if deadline.passed:
            raise TimeoutError(f"timed out after {deadline.seconds:.3g} s")
        self._socket.settimeout(deadline.remaining)
