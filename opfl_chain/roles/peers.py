"""Requests of a daemon to its peers: the roster at its endpoints on chain, and the server."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from opfl_chain.chain.rpc import tohex, unhex
from opfl_chain.mpc.session.ranks import certificate_name
from opfl_chain.protocol.aggregate import aggregate_hash, weights_hash
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.ring import Words
from opfl_chain.roles.patience import BYTES_PER_SECOND, DUE_SECONDS, Patience
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
_LONGEST_SECONDS: Final = 30.0
"""The limit of a request that makes the peer compute or ask others, and of the largest bodies."""
_GRACE_SECONDS: Final = 4.0
"""Time that a late answer is waited for, at the cost of the peer."""
_CONNECT_SECONDS = 2.0
_VIRTUAL_SECONDS = 600.0
"""Time limit of any request in virtual time, where a slow peer brings no deadline nearer."""
AT_ONCE: Final = 8
"""Requests that are made at the same time for one purpose."""
_THREADS: Final = 32
"""More than may be open to one peer."""

T = TypeVar("T")
R = TypeVar("R")


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

    def __init__(
        self, view: ChainView, settings: NodeSettings, due_seconds: float = DUE_SECONDS
    ) -> None:
        self._view = view
        self._server = settings.server
        tls = settings.tls
        authority = tls.authority if tls else None
        self._virtual = settings.chain.time == "virtual"
        self.patience = Patience(math.inf if self._virtual else due_seconds)
        self.own_tls: TlsFiles | None = None
        if tls and tls.certificate and tls.private_key:
            self.own_tls = TlsFiles(tls.certificate, tls.private_key, tls.authority)
        longest = _VIRTUAL_SECONDS if self._virtual else _LONGEST_SECONDS
        connect = _VIRTUAL_SECONDS if self._virtual else _CONNECT_SECONDS
        self._http = HttpClient(
            authority, longest, connect_seconds=connect, attempts=1, own=self.own_tls
        )
        self._pool = ThreadPoolExecutor(_THREADS, "peers")
        self.traffic = Traffic()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._http.close()

    def together(
        self, asked: Iterable[T], ask: Callable[[T], R], at_once: int = AT_ONCE
    ) -> Iterator[tuple[T, R | TransportError]]:
        """Ask for each of these at the same time, and return answers and failures as they come in.

        `ask` runs in other threads, and only asks: state is read and written where the answers are
        taken. Who has enough need not take the rest. In virtual time they are asked one after the
        other: which answer comes first would depend on the machine.
        """
        if self._virtual:
            for each in asked:
                yield each, _tried(ask, each)
            return
        left, pending = iter(asked), dict[Future[R | TransportError], T]()
        try:
            while True:
                for each in islice(left, at_once - len(pending)):
                    pending[self._pool.submit(_tried, ask, each)] = each
                if not pending:
                    return
                for done in wait(pending, return_when=FIRST_COMPLETED).done:
                    yield pending.pop(done), done.result()
        finally:
            for request in pending:
                request.cancel()

    # --- members

    def ask_member(self, member: Address, path: str, most_bytes: int = _SMALL) -> bytes:
        return self._get(member, path, most_bytes)

    def ask_member_json(self, member: Address, path: str) -> dict[str, Any]:
        return object_in(self.ask_member(member, path))

    def post_to_member(
        self, member: Address, path: str, body: bytes, signature: bytes, *, patient: bool = False
    ) -> dict[str, Any]:
        """Post signed bytes; the member acknowledges what it keeps.

        Be patient if it has to compute before, to ask others, or if our own link may be slow.
        """
        seconds = None if patient or self._virtual else _limit_of(len(body))
        with self.patience.waiting(member) as transfer:
            transfer.size = len(body)
            answer = self._http.post(
                self._url(member),
                self._name(member),
                path,
                body,
                headers={"Opfl-Signature": tohex(signature)},
                max_bytes=_SMALL,
                seconds=seconds,
            )
        self.traffic.add(len(body), len(answer))
        return object_in(answer)

    def likely(self, members: Sequence[Address], first: Address | None = None) -> list[Address]:
        """Return members in the order in which to ask them for something that each may have.

        `first` is who said that it has it. Whoever keeps us waiting comes last all the same.
        """
        ordered = sorted(members, key=lambda member: member != first)
        return self.patience.in_order(ordered)

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
        for source in self.patience.in_order(self._sources()):
            try:
                body = self._get(source, path, most_bytes)
            except TransportError as error:
                asked.append(str(error))
                continue
            if accept(body):
                return body
            self.patience.misled(source)
            asked.append(f"{source} sent something else")
        raise ModelMissing(f"no peer has {path}: {'; '.join(asked) or 'no peer is known'}")

    def _sources(self) -> list[str]:
        server = [SERVER_NAME] if self._server is not None else []
        return [*server, *self._view.endpoints()]

    # --- HTTP

    def _get(self, source: str, path: str, most_bytes: int) -> bytes:
        seconds = None if self._virtual else _limit_of(most_bytes)
        with self.patience.waiting(source) as transfer:
            body: bytes = self._http.get(
                self._url(source),
                self._name(source),
                path,
                max_bytes=most_bytes,
                seconds=seconds,
            )
            transfer.size = len(body)
        self.traffic.add(0, len(body))
        return body

    def _url(self, source: str) -> str:
        if source == SERVER_NAME and self._server is not None:
            return self._server
        endpoint = self._view.endpoints().get(source)
        if endpoint is None:
            raise NoEndpoint(f"member {source} has announced no endpoint yet")
        return endpoint

    def _name(self, source: str) -> str:
        if source == SERVER_NAME:
            return SERVER_NAME
        return certificate_name(list(self._view.roster()).index(source))


def _limit_of(size: int) -> float:
    """The seconds in which a body of this size must have come or gone.

    A peer that hangs or drips must not make us miss deadlines.
    """
    seconds = DUE_SECONDS + _GRACE_SECONDS + size / BYTES_PER_SECOND
    return min(seconds, _LONGEST_SECONDS)


def _tried(ask: Callable[[T], R], asked: T) -> R | TransportError:
    try:
        return ask(asked)
    except TransportError as error:
        return error


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
