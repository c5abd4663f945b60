"""Attack `idle-connections` on an HTTP server, and the places that strangers cannot take."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from first_come import FirstCome
from transport_support import HELLO, NAME, port_of

from opfl_chain.adversaries.strangers import STRANGERS
from opfl_chain.transport import reception
from opfl_chain.transport.certificates import Authority
from opfl_chain.transport.client import HttpClient
from opfl_chain.transport.errors import PeerRefused, PeerUnavailable
from opfl_chain.transport.limits import Limits
from opfl_chain.transport.routes import Request, Response, Route
from opfl_chain.transport.server import HttpServer
from opfl_chain.transport.tls import TlsFiles, client_context

IDLE = 1000
ADDRESSES = (500, 1)
"""Many, and the one of the client itself."""
DELIVERY = bytes(1 << 20)
DELIVERIES = 16
PATIENT = Limits(head_seconds=600, receive_seconds=600, answer_seconds=600)
"""As in virtual time, where no connection ends because it is slow."""
ATTEMPTS = 20
"""A client tries again until its delivery is taken; nobody waits for so many of its attempts."""


def deliver(request: Request) -> Response:
    return Response.json({"taken": len(request.body)})


def deliveries(signed: bool = True) -> Route:
    return Route("POST", "/deliveries", deliver, len(DELIVERY), signed)


@pytest.fixture(autouse=True)
def many_descriptors() -> Iterator[None]:
    """Both ends of the attack are in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def first_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reception, "Pool", FirstCome)


@pytest.fixture(params=ADDRESSES)
def attacked(request: pytest.FixtureRequest, tls: TlsFiles) -> Iterator[HttpServer]:
    """A server with all the idle connections that it holds, and more that want to get in."""
    with HttpServer("127.0.0.1:0", [deliveries()], tls, PATIENT) as server:
        target = server.url.removeprefix("https://")
        with STRANGERS["idle-connections"](target, IDLE, request.param) as attack:
            while attack.opened < IDLE:
                time.sleep(0.01)
            yield server


def test_a_thousand_idle_connections_stop_no_delivery(
    attacked: HttpServer, authority: Authority
) -> None:
    with (
        HttpClient(authority.certificate, attempts=ATTEMPTS) as client,
        ThreadPoolExecutor(4) as pool,
    ):

        def send(_: int) -> bytes:
            return client.post(attacked.url, NAME, "/deliveries", DELIVERY, 100, idempotent=True)

        assert set(pool.map(send, range(DELIVERIES))) == {b'{"taken":1048576}'}


def test_without_the_defence_idle_connections_shut_the_server(
    first_come: None, attacked: HttpServer, authority: Authority
) -> None:
    with (
        HttpClient(authority.certificate, attempts=1) as client,
        pytest.raises(PeerUnavailable),
    ):
        client.post(attacked.url, NAME, "/deliveries", DELIVERY, 100)


# --- strangers that keep handlers busy


@contextmanager
def busy_server(tls: TlsFiles, signed: bool = False) -> Iterator[HttpServer]:
    """A server that took a delivery from 127.0.0.1, and now handles a request of 127.0.0.2, as many
    as it handles for strangers.
    """
    entered, leave = threading.Event(), threading.Event()

    def linger(_: Request) -> Response:
        entered.set()
        assert leave.wait(600)
        return Response()

    routes = [Route("GET", "/slow", linger), HELLO, deliveries(signed)]
    limits = Limits(connections=1, connections_per_address=1)
    context = client_context(tls.authority)
    with HttpServer("127.0.0.1:0", routes, tls, limits) as server:
        address = "127.0.0.1", port_of(server.url)
        with HttpClient(tls.authority, attempts=1) as client:
            client.post(server.url, NAME, "/deliveries", b"", 100)
        plain = socket.create_connection(address, source_address=("127.0.0.2", 0))
        with context.wrap_socket(plain, server_hostname=NAME) as stranger:
            stranger.sendall(b"GET /slow HTTP/1.1\r\n\r\n")
            assert entered.wait(600)
            try:
                yield server
            finally:
                leave.set()


def hello(server: HttpServer, authority: Path, own: TlsFiles | None = None) -> bytes:
    with HttpClient(authority, attempts=1, own=own) as client:
        return client.get(server.url, NAME, "/hello", 100)


def test_a_peer_with_a_certificate_is_served_when_strangers_are_not(
    tls: TlsFiles, authority: Authority
) -> None:
    with busy_server(tls) as server:
        with pytest.raises(PeerRefused, match="503: too many requests are being handled"):
            hello(server, authority.certificate)
        assert hello(server, authority.certificate, authority.issue("member-1"))


def test_an_address_of_a_signed_request_is_served_when_strangers_are_not(
    tls: TlsFiles, authority: Authority
) -> None:
    with busy_server(tls, signed=True) as server:
        assert hello(server, authority.certificate)


def test_a_certificate_of_another_authority_is_refused(
    tls: TlsFiles, authority: Authority, tmp_path: Path
) -> None:
    theirs = Authority.create(tmp_path).issue(NAME)
    with (
        HttpServer("127.0.0.1:0", [HELLO], tls) as server,
        pytest.raises(PeerUnavailable),
    ):
        hello(server, authority.certificate, theirs)
