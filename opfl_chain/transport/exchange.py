"""One HTTP request and its response."""

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
from opfl_chain.transport.limits import Limits, RateLimiter
from opfl_chain.transport.reception import Displaced, Reception, Visit
from opfl_chain.transport.routes import Refusal, Request, Response, Route, Router
from opfl_chain.transport.stream import HeadTooLarge

_LOGGER = logging.getLogger(__name__)
_VERSIONS: Final = ("HTTP/1.0", "HTTP/1.1")
_LENGTH: Final = re.compile("[0-9]{1,15}")
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


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
        visit: Visit,
        reception: Reception,
        router: Router,
        limits: Limits,
        rate: RateLimiter,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._visit = visit
        self._stream = visit.stream
        self._remote = visit.remote
        self._reception = reception
        self._router = router
        self._limits = limits
        self._rate = rate
        self._tls = tls
        self._unread = True
        """True while the peer may still be sending its request."""

    def run(self) -> None:
        try:
            response = self._respond()
            if response is None:
                return
            self._stream.write(_encoded(response), Deadline(self._limits.answer_seconds))
            if self._unread:
                self._stream.drain()
        except OSError as error:  # includes TLS errors and timeouts
            _LOGGER.info("dropped the connection from %s: %s", self._remote, error)

    def _respond(self) -> Response | None:
        receiving = Deadline(self._limits.receive_seconds)
        heading = Deadline(self._limits.head_seconds, receiving.started)
        if self._tls:
            self._stream.secure(self._tls, heading)
            if name := self._stream.peer_name:
                self._reception.recognise(self._visit, name)
        try:
            head = self._stream.read_head(self._limits.header_bytes, heading)
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
        wait = self._rate.take(self._visit.sender)
        if wait:
            raise Refusal(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"more than {self._limits.requests_per_second:.3g} requests a second from "
                f"{self._remote}",
                {"Retry-After": str(math.ceil(wait))},
            )

    def _handle(self, route: Route, request: Request) -> Response:
        try:
            with self._reception.handling(self._visit):
                response = route.handler(request)
            if route.signed:
                self._reception.vouch_for(self._visit)
            return response
        except (Refusal, Displaced):
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
