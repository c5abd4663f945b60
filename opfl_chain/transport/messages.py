"""Requests and responses as handlers see them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final

from pydantic_core import from_json

from opfl_chain.transport.errors import TransportError

JSON_TYPE: Final = "application/json"
BYTES_TYPE: Final = "application/octet-stream"


class Refusal(TransportError):
    """Raised by a handler: the peer gets the status and the message, and nothing else happens."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


@dataclass(frozen=True)
class Request:
    """`parts` are the named parts of the route's path, decoded; names of `headers` are in lower
    case.
    """

    method: str
    path: str
    parts: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    remote: str
    """The address that it came from, without the port."""

    def json(self) -> Any:
        """The body. Refuses what is not JSON."""
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
        """What the peer sees of it."""
        told = cls.json({"error": refusal.message}, refusal.status)
        return replace(told, headers=refusal.headers)


def parse_json(body: bytes) -> Any:
    """Raises ValueError for all that is not JSON, or is nested too deep.

    The standard library's parser goes as deep as Python's recursion limit, which any package may
    raise above what the stack holds.
    """
    return from_json(body, allow_inf_nan=False)
