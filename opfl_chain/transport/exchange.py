"""One HTTP request and its response, on a connection where every operation has a deadline.

A socket's timeout restarts with every byte, so a peer that sends byte by byte could hold the
connection for ever; TLS `sendall` has the same flaw. Here each call gets the remaining time.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import re
import socket
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Final, NoReturn

from opfl_chain.transport.deadline import Deadline
from opfl_chain.transport.limits import Limits, RateLimiter, sender_of
from opfl_chain.transport.routes import Refusal, Request, Response, Route, Router

_CHUNK_BYTES: Final = 1 << 16
_END_OF_HEAD: Final = re.compile(rb"\r?\n\r?\n")
_LINGER_SECONDS: Final = 2.0
_LOGGER = logging.getLogger(__name__)
_VERSIONS: Final = ("HTTP/1.0", "HTTP/1.1")
_LENGTH: Final = re.compile("[0-9]{1,15}")
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class HeadTooLarge(Exception):
    """Request line and headers are longer than allowed."""


class Stream:
    """A connection used by one thread; only `cut` is thread-safe."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._received = b""

    def secure(self, context: ssl.SSLContext, deadline: Deadline) -> None:
        """Perform the server's side of a TLS handshake."""
        self._wait_until(deadline)
        wrapped = context.wrap_socket(self._socket, server_side=True, do_handshake_on_connect=False)
        self._socket = wrapped
        wrapped.do_handshake()

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
        while rest:
            self._wait_until(deadline)
            rest = rest[self._socket.send(rest[:_CHUNK_BYTES]) :]

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
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

    def _receive(self, most_bytes: int, deadline: Deadline) -> bytes:
        self._wait_until(deadline)
        return self._socket.recv(most_bytes)

    def _wait_until(self, deadline: Deadline) -> None:
        if deadline.passed:
            raise TimeoutError(f"timed out after {deadline.seconds:.3g} s")
        self._socket.settimeout(deadline.remaining)


class _Head(BaseHTTPRequestHandler):
    """The standard library's parser of request line and headers, on received bytes."""

    def __init__(self, head: bytes) -> None:
        self.rfile = io.BytesIO(head)
        self.raw_requestline = self.rfile.readline()
        if not self.parse_request() or self.request_version not in _VERSIONS:
            self.send_error(HTTPStatus.BAD_REQUEST, "the request is not HTTP/1.1")

    def send_error(
        self, code: int, message: str | None = None, explain: str | None = None
    ) -> NoReturn:
        raise Refusal(code, message or HTTPStatus(code).phrase)

    def handle_expect_100(self) -> bool:
        return True  # sent later, once the body is known to be acceptable


class Exchange:
    """Serves one connection. `run` never raises because of what a peer does."""

    def __init__(
        self,
        stream: Stream,
        remote: str,
        router: Router,
        limits: Limits,
        rate: RateLimiter,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._stream = stream
        self._remote = remote
        self._router = router
        self._limits = limits
        self._rate = rate
        self._tls = tls
        self._unread = True
        """True while the peer may still be sending its request."""

    def run(self) -> None:
        receiving = Deadline(self._limits.receive_seconds)
        try:
            if self._tls:
                self._stream.secure(self._tls, receiving)
            response = self._respond(receiving)
            if response is None:
                return
            self._stream.write(_encoded(response), Deadline(self._limits.answer_seconds))
            if self._unread:
                self._stream.drain()
        except OSError as error:  # includes TLS errors and timeouts
            _LOGGER.info("dropped the connection from %s: %s", self._remote, error)

    def _respond(self, receiving: Deadline) -> Response | None:
        try:
            head = self._stream.read_head(self._limits.header_bytes, receiving)
            if not head:
                return None
            route, request = self._receive(_Head(head), receiving)
            return self._handle(route, request)
        except HeadTooLarge:
            refusal = Refusal(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"headers are larger than {self._limits.header_bytes} bytes",
            )
        except Refusal as error:
            refusal = error
        _LOGGER.info("refused a request from %s: %s", self._remote, refusal)
        return Response.refusing(refusal)

    def _receive(self, head: _Head, receiving: Deadline) -> tuple[Route, Request]:
        self._require_rate()
        path = head.path.partition("?")[0]
        route, parts = self._router.find(head.command, path)
        size = _body_size(head)
        if size > route.max_body_bytes:
            raise Refusal(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the body has {size} bytes; {route.max_body_bytes} are allowed",
            )
        if size and head.headers.get("Expect", "").lower() == "100-continue":
            self._stream.write(_CONTINUE, receiving)
        body = self._stream.read_body(size, receiving)
        self._unread = False
        headers = {name.lower(): value for name, value in head.headers.items()}
        return route, Request(head.command, path, parts, headers, body, self._remote)

    def _require_rate(self) -> None:
        wait = self._rate.take(sender_of(self._remote))
        if wait:
            raise Refusal(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"more than {self._limits.requests_per_second:.3g} requests a second from "
                f"{self._remote}",
                {"Retry-After": str(math.ceil(wait))},
            )

    def _handle(self, route: Route, request: Request) -> Response:
        try:
            return route.handler(request)
        except Refusal:
            raise
        except Exception as error:
            _LOGGER.exception("%s %s from %s failed", request.method, request.path, self._remote)
            raise Refusal(
                HTTPStatus.INTERNAL_SERVER_ERROR, "internal error, not caused by the request"
            ) from error


def _body_size(head: _Head) -> int:
    lengths: list[str] = head.headers.get_all("Content-Length", [])
    if "Transfer-Encoding" in head.headers:
        raise Refusal(HTTPStatus.LENGTH_REQUIRED, "send Content-Length, not Transfer-Encoding")
    if not lengths and head.command in ("POST", "PUT", "PATCH"):
        raise Refusal(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing")
    if len(lengths) > 1 or not all(map(_LENGTH.fullmatch, lengths)):
        raise Refusal(HTTPStatus.BAD_REQUEST, "Content-Length is not a single number")
    return int(lengths[0]) if lengths else 0


def _encoded(response: Response) -> bytes:
    headers: Mapping[str, str] = {
        "Content-Type": response.content_type,
        "Content-Length": str(len(response.body)),
        "Connection": "close",
        **response.headers,
    }
    lines = [f"HTTP/1.1 {int(response.status)} {HTTPStatus(response.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + response.body
