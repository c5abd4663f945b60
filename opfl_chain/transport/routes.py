"""Requests and responses as handlers see them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from pydantic_core import from_json

from opfl_chain.transport.errors import RouteInvalid, TransportError

JSON_TYPE: Final = "application/json"
BYTES_TYPE: Final = "application/octet-stream"
_NAMED: Final = re.compile(r"\{([a-z_]+)\}")
_LITERAL: Final = re.compile(r"[A-Za-z0-9._~-]+")


class Refusal(TransportError):
    """Raised by a handler to send the peer this status and message instead of a response."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


@dataclass(frozen=True)
class Request:
    """A received request. `parts` are the named parts of the route's path, decoded; names of
    `headers` are in lower case.
    """

    method: str
    path: str
    parts: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    remote: str
    """The sender's IP address, without the port."""

    def json(self) -> Any:
        """Return the parsed body. Refuses anything that is not JSON."""
        try:
            return parse_json(self.body)
        except ValueError as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}") from error


@dataclass(frozen=True)
class Response:
    status: int = HTTPStatus.OK
    body: bytes = b""
    content_type: str = BYTES_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, value: Any, status: int = HTTPStatus.OK) -> Response:
        return cls(status, json.dumps(value, separators=(",", ":")).encode(), JSON_TYPE)

    @classmethod
    def binary(cls, body: bytes, status: int = HTTPStatus.OK) -> Response:
        return cls(status, body)

    @classmethod
    def refusing(cls, refusal: Refusal) -> Response:
        """Return the response that the peer gets for a refusal."""
        told = cls.json({"error": refusal.message}, refusal.status)
        return replace(told, headers=refusal.headers)


def parse_json(body: bytes) -> Any:
    """Parse JSON. Raises ValueError if it is invalid or nested too deep.

    The standard library's parser recurses up to Python's recursion limit, which any package may
    raise above what the stack holds.
    """
    return from_json(body, allow_inf_nan=False)


Handler: TypeAlias = Callable[[Request], Response]


@dataclass(frozen=True)
class Route:
    """A method and a path `pattern`, which may have named parts, as in "/rounds/{round}/sum".

    A named part matches any non-empty text. Bodies may have up to `max_body_bytes`. The handler of
    a `signed` route accepts only requests that a party of the job has signed.
    """

    method: str
    pattern: str
    handler: Handler
    max_body_bytes: int = 0
    signed: bool = False
    _segments: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        first, *segments = self.pattern.split("/")
        valid = all(_NAMED.fullmatch(each) or _LITERAL.fullmatch(each) for each in segments)
        if first or not segments or not (valid or segments == [""]):
            raise RouteInvalid(
                f"{self.pattern!r} is not a route pattern. Use /words/and/{{names}}."
            )
        object.__setattr__(self, "_segments", tuple(segments))

    def match(self, segments: Sequence[str]) -> dict[str, str] | None:
        """Return the named parts, or None if the path does not match."""
        if len(segments) != len(self._segments):
            return None
        parts = {}
        for segment, wanted in zip(segments, self._segments, strict=True):
            if name := _NAMED.fullmatch(wanted):
                if not segment:
                    return None
                parts[name[1]] = segment
            elif segment != wanted:
                return None
        return parts


class Router:
    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = tuple(routes)

    def find(self, method: str, path: str) -> tuple[Route, Mapping[str, str]]:
        """Return the first matching route. Refuses with 404, or 405 if only the method differs."""
        segments = [unquote(each) for each in path.split("/")[1:]]
        allowed = set()
        for route in self._routes:
            parts = route.match(segments)
            if parts is not None and route.method == method:
                return route, parts
            if parts is not None:
                allowed.add(route.method)
        if allowed:
            methods = ", ".join(sorted(allowed))
            raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"use {methods} here", {"Allow": methods})
        raise Refusal(HTTPStatus.NOT_FOUND, "no such path")
