"""Whom a daemon asks, and for what: the members at the endpoints on chain, and the server."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import numpy as np

from opfl_chain.chain.rpc import tohex, unhex
from opfl_chain.mpc.tls import certificate_name
from opfl_chain.nodes.chain_view import ChainView
from opfl_chain.nodes.errors import ModelMissing
from opfl_chain.nodes.settings import NodeSettings
from opfl_chain.protocol.aggregate import aggregate_hash
from opfl_chain.protocol.identifiers import Address, RoundId
from opfl_chain.protocol.ring import Words
from opfl_chain.transport.client import HttpClient
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.messages import parse_json
from opfl_chain.transport.tls import TlsFiles

SERVER_NAME = "server"
_SMALL = 1 << 16
_WORD_BYTES = 8
_SECONDS = 30.0
_QUICK_SECONDS = 5.0
"""For answers of a few bytes: whoever drips them must not keep us from our deadlines."""


class NoEndpoint(TransportError):
    """A member has not said where it is reached."""


class Peers:
    """Safe to share between threads."""

    def __init__(self, view: ChainView, settings: NodeSettings) -> None:
        self._view = view
        self._server = settings.server
        tls = settings.tls
        authority = tls.authority if tls else None
        self._http = HttpClient(authority, _SECONDS, connect_seconds=2, attempts=1)
        self._quick = HttpClient(authority, _QUICK_SECONDS, connect_seconds=2, attempts=1)
        self.own_tls: TlsFiles | None = None
        if tls and tls.certificate and tls.private_key:
            self.own_tls = TlsFiles(tls.certificate, tls.private_key, tls.authority)
        self._lock = threading.Lock()
        self._sent = self._received = 0

    def __enter__(self) -> Peers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()
        self._quick.close()

    def traffic(self) -> dict[str, int]:
        """Bytes of bodies that were sent to others and received from them."""
        with self._lock:
            return {"bytes_sent": self._sent, "bytes_received": self._received}

    # --- members

    def ask_member(self, member: Address, path: str, most_bytes: int = _SMALL) -> bytes:
        return self._get(self._url(member), self._name(member), path, most_bytes)

    def ask_member_json(self, member: Address, path: str) -> dict[str, Any]:
        return object_in(self.ask_member(member, path))

    def deliver(
        self, member: Address, round_id: RoundId, client: Address, body: bytes, signature: bytes
    ) -> dict[str, Any]:
        """Returns the member's receipt."""
        answer = self._http.post(
            self._url(member),
            self._name(member),
            f"/rounds/{round_id}/deliveries/{client}",
            body,
            headers={"Opfl-Signature": tohex(signature)},
            max_bytes=_SMALL,
        )
        self._count(len(body), len(answer))
        return object_in(answer)

    def others(self, own: Address) -> Iterator[tuple[int, Address]]:
        """All members but one, with their ranks."""
        for rank, member in enumerate(self._view.job.members):
            if member != own:
                yield rank, member

    # --- the server, or whoever has it

    def post_to_server(self, path: str, body: bytes, signature: bytes) -> dict[str, Any]:
        if self._server is None:
            raise NoEndpoint("no server is named in the settings")
        headers = {"Opfl-Signature": tohex(signature)}
        answer = self._quick.post(
            self._server, SERVER_NAME, path, body, headers=headers, max_bytes=_SMALL
        )
        self._count(len(body), len(answer))
        return object_in(answer)

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

    def lists(self, path: str, most_bytes: int) -> Iterator[bytes]:
        """What each of those says who have something there. The caller checks it."""
        for url, name in self._sources():
            with contextlib.suppress(TransportError):
                yield self._get(url, name, path, most_bytes)

    def fetch_weights(self, path: str, most_bytes: int, accept: Any) -> bytes:
        return self._anywhere(path, most_bytes, accept)

    def _anywhere(self, path: str, most_bytes: int, accept: Any) -> bytes:
        """Ask the server, then every member, for what is known by its hash."""
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
        raise ModelMissing(f"nobody has {path}: {'; '.join(asked) or 'nobody is known'}")

    def _sources(self) -> Iterator[tuple[str, str]]:
        if self._server is not None:
            yield self._server, SERVER_NAME
        for member, url in self._view.endpoints().items():
            yield url, self._name(member)

    # --- HTTP

    def _get(self, url: str, name: str, path: str, most_bytes: int) -> bytes:
        http = self._quick if most_bytes <= _SMALL else self._http
        body: bytes = http.get(url, name, path, max_bytes=most_bytes)
        self._count(0, len(body))
        return body

    def _url(self, member: Address) -> str:
        endpoint = self._view.endpoints().get(member)
        if endpoint is None:
            raise NoEndpoint(f"member {member} has announced no endpoint yet")
        return endpoint

    def _name(self, member: Address) -> str:
        return certificate_name(list(self._view.job.members).index(member))

    def _count(self, sent: int, received: int) -> None:
        with self._lock:
            self._sent += sent
            self._received += received


def object_in(body: bytes) -> dict[str, Any]:
    """What a peer answered in JSON."""
    try:
        answer = parse_json(body)
    except ValueError as error:
        raise TransportError(f"an answer is no JSON: {body[:80]!r}") from error
    if not isinstance(answer, dict):
        raise TransportError(f"an answer is no JSON object: {body[:80]!r}")
    return answer


def hex_field(answer: dict[str, Any], name: str, size: int) -> bytes:
    """Bytes of exactly this size, from what a peer answered."""
    value = answer.get(name)
    try:
        data = unhex(value) if isinstance(value, str) else b""
    except ValueError:
        data = b""
    if len(data) != size:
        raise TransportError(
            f"an answer has {value!r:.80} as {name}, it must be {size} bytes in hex"
        )
    return data
