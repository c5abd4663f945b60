"""One request over one connection, and its answer.

A connection carries one request only: what it costs to make another is little next to what clients
deliver, and nothing of one request can be taken for part of the next.
"""

from __future__ import annotations

import io
import logging
import math
import re
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Final, NoReturn

from opfl_chain.transport.deadline import Deadline
from opfl_chain.transport.limits import Limits
from opfl_chain.transport.messages import Refusal, Request, Response
from opfl_chain.transport.rate import RateLimiter, sender_of
from opfl_chain.transport.routes import Route, Router
from opfl_chain.transport.stream import HeadTooLarge, Stream

_LOGGER = logging.getLogger(__name__)
_VERSIONS: Final = ("HTTP/1.0", "HTTP/1.1")
_LENGTH: Final = re.compile("[0-9]{1,15}")
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class _Head(BaseHTTPRequestHandler):
    """The standard library's parser of request line and headers, on bytes that are there."""

    def __init__(self, head: bytes) -> None:
        self.rfile = io.BytesIO(head)
        self.raw_requestline = self.rfile.readline()
        if not self.parse_request() or self.request_version not in _VERSIONS:
            self.send_error(HTTPStatus.BAD_REQUEST, "this is not a request of HTTP/1.1")

    def send_error(
        self, code: int, message: str | None = None, explain: str | None = None
    ) -> NoReturn:
        raise Refusal(code, message or HTTPStatus(code).phrase)

    def handle_expect_100(self) -> bool:
        return True  # we say it when we know that the body is welcome


class Exchange:
    """`run` never raises for what a peer does."""

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
        """Whether the peer may still be sending what we do not want."""

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
        except OSError as error:  # also of TLS, and what is too late
            _LOGGER.info("connection from %s was given up: %s", self._remote, error)

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
                f"headers may have {self._limits.header_bytes} bytes",
            )
        except Refusal as error:
            refusal = error
        _LOGGER.info("refused %s with %s", self._remote, refusal)
        return Response.refusing(refusal)

    def _receive(self, head: _Head, receiving: Deadline) -> tuple[Route, Request]:
        self._require_rate()
        path = head.path.partition("?")[0]
        route, parts = self._router.find(head.command, path)
        size = _body_size(head)
        if size > route.max_body_bytes:
            raise Refusal(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"a body of {size} bytes; {route.max_body_bytes} are allowed here",
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
                HTTPStatus.INTERNAL_SERVER_ERROR, "something is wrong here, not with the request"
            ) from error


def _body_size(head: _Head) -> int:
    lengths: list[str] = head.headers.get_all("Content-Length", [])
    if "Transfer-Encoding" in head.headers:
        raise Refusal(HTTPStatus.LENGTH_REQUIRED, "send the body whole, with its Content-Length")
    if not lengths and head.command in ("POST", "PUT", "PATCH"):
        raise Refusal(HTTPStatus.LENGTH_REQUIRED, "there is no Content-Length")
    if len(lengths) > 1 or not all(map(_LENGTH.fullmatch, lengths)):
        raise Refusal(HTTPStatus.BAD_REQUEST, "Content-Length is not one number")
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
