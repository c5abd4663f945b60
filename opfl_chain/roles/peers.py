"""Requests of a daemon to its peers: the roster at its endpoints on chain, and the server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.chain.rpc import tohex, unhex
from opfl_chain.mpc.session.ranks import certificate_name
from opfl_chain.protocol.aggregate import aggregate_hash, weights_hash
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.ring import Words
from opfl_chain.roles.settings import ModelMissing, NodeSettings
from opfl_chain.roles.view.view import ChainView
from opfl_chain.system.closing import Closing
from opfl_chain.transport.client import HttpClient
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.routes import Request, Response, Route, parse_json
from opfl_chain.transport.tls import TlsFiles

SERVER_NAME = "server"
_SMALL = 1 << 16
_WORD_BYTES = 8
_FLOAT_BYTES = 4
_SECONDS = 30.0
_QUICK_SECONDS = 5.0
"""The limit for short responses: a peer that drips them must not make us miss deadlines."""
_CONNECT_SECONDS = 2.0
_VIRTUAL_SECONDS = 600.0
"""Time limit of any request in virtual time, where a slow peer brings no deadline nearer."""


class NoEndpoint(TransportError):
    """A member has not announced its endpoint."""


class Traffic:
    """Bytes of message bodies, of requests both made and answered. Safe in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent = self._received = 0

    def add(self, sent: int, received: int) -> None:
        with self._lock:
            self._sent += sent
            self._received += received

    def counted(self, route: Route) -> Route:
        """Return the route, with the bodies of its answered requests counted."""

        def handle(request: Request) -> Response:
            response = route.handler(request)
            self.add(len(response.body), len(request.body))
            return response

        return replace(route, handler=handle)

    def report(self) -> dict[str, int]:
        with self._lock:
            return {"bytes_sent": self._sent, "bytes_received": self._received}


class Peers(Closing):
    """Safe to share between threads."""

    def __init__(self, view: ChainView, settings: NodeSettings) -> None:
        self._view = view
        self._server = settings.server
        tls = settings.tls
        authority = tls.authority if tls else None
        seconds = _SECONDS, _QUICK_SECONDS, _CONNECT_SECONDS
        if settings.chain.time == "virtual":
            seconds = (_VIRTUAL_SECONDS,) * 3
        usual, quick, connect = seconds
        self.own_tls: TlsFiles | None = None
        if tls and tls.certificate and tls.private_key:
            self.own_tls = TlsFiles(tls.certificate, tls.private_key, tls.authority)
        self._http, self._quick = (
            HttpClient(authority, limit, connect_seconds=connect, attempts=1, own=self.own_tls)
            for limit in (usual, quick)
        )
        self.traffic = Traffic()

    def close(self) -> None:
        self._http.close()
        self._quick.close()

    # --- members

    def ask_member(self, member: Address, path: str, most_bytes: int = _SMALL) -> bytes:
        return self._get(self._url(member), self._name(member), path, most_bytes)

    def ask_member_json(self, member: Address, path: str) -> dict[str, Any]:
        return object_in(self.ask_member(member, path))

    def post_to_member(
        self, member: Address, path: str, body: bytes, signature: bytes
    ) -> dict[str, Any]:
        """Post signed bytes; the member acknowledges what it keeps."""
        headers = {"Opfl-Signature": tohex(signature)}
        answer = self._http.post(
            self._url(member), self._name(member), path, body, headers=headers, max_bytes=_SMALL
        )
        self.traffic.add(len(body), len(answer))
        return object_in(answer)

    # --- anyone who has the content

    def fetch_aggregate(self, wanted: bytes) -> Words:
        words = self._anywhere(
            f"/aggregates/{tohex(wanted)}",
            _WORD_BYTES * self._view.job.boundary.coordinates,
            lambda body: (
                len(body) % _WORD_BYTES == 0
                and aggregate_hash(np.frombuffer(body, "<i8")) == wanted
            ),
        )
        return np.frombuffer(words, "<i8")

    def fetch_weights(self, wanted: bytes, parameters: int) -> NDArray[np.float32]:
        """Fetch a model with this many values, flat and in canonical order."""
        size = _FLOAT_BYTES * parameters
        body = self._anywhere(
            f"/models/{tohex(wanted)}",
            size,
            lambda body: len(body) == size and weights_hash(_floats(body)) == wanted,
        )
        return _floats(body)

    def _anywhere(self, path: str, most_bytes: int, accept: Callable[[bytes], bool]) -> bytes:
        """Ask the server, then every member, for content that is known by its hash."""
        asked = []
        for url, name in self._sources():
            try:
                body = self._get(url, name, path, most_bytes)
            except TransportError as error:
                asked.append(str(error))
                continue
            if accept(body):
                return body
            asked.append(f"{url} sent something else")
        raise ModelMissing(f"no peer has {path}: {'; '.join(asked) or 'no peer is known'}")

    def _sources(self) -> Iterator[tuple[str, str]]:
        if self._server is not None:
            yield self._server, SERVER_NAME
        for member, url in self._view.endpoints().items():
            yield url, self._name(member)

    # --- HTTP

    def _get(self, url: str, name: str, path: str, most_bytes: int) -> bytes:
        http = self._quick if most_bytes <= _SMALL else self._http
        body: bytes = http.get(url, name, path, max_bytes=most_bytes)
        self.traffic.add(0, len(body))
        return body

    def _url(self, member: Address) -> str:
        endpoint = self._view.endpoints().get(member)
        if endpoint is None:
            raise NoEndpoint(f"member {member} has announced no endpoint yet")
        return endpoint

    def _name(self, member: Address) -> str:
        return certificate_name(list(self._view.roster()).index(member))


def _floats(body: bytes) -> NDArray[np.float32]:
    return np.frombuffer(body, "<f4").astype(np.float32)


def object_in(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a peer's response."""
    try:
        answer = parse_json(body)
    except ValueError as error:
        raise TransportError(f"the response is not valid JSON: {body[:80]!r}") from error
    if not isinstance(answer, dict):
        raise TransportError(f"the response is not a JSON object: {body[:80]!r}")
    return answer


def bytes_field(answer: dict[str, Any], name: str) -> bytes:
    """Return a field of a peer's response as bytes."""
    value = answer.get(name)
    try:
        return unhex(value) if isinstance(value, str) else b""
    except ValueError:
        raise TransportError(
            f"the response has {value!r:.80} as {name}, not bytes in hex"
        ) from None


def hex_field(answer: dict[str, Any], name: str, size: int) -> bytes:
    """Return a field of a peer's response as bytes of exactly this size."""
    value = answer.get(name)
    try:
        data = unhex(value) if isinstance(value, str) else b""
    except ValueError:
        data = b""
    if len(data) != size:
        raise TransportError(
            f"the response has {value!r:.80} as {name}, it must be {size} bytes in hex"
        )
    return data
