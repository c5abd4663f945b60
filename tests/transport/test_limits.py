"""Each limit of a server, against peers that exceed it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from transport_support import (
    ECHO,
    GET_HELLO,
    HELLO,
    KILOBYTE,
    MOST_DRIP_SECONDS,
    NAME,
    answer_to,
    connect,
    drip,
    rest_of,
    status_of,
)

from opfl_chain.transport.client import HttpClient
from opfl_chain.transport.errors import LimitInvalid, PeerRefused
from opfl_chain.transport.limits import Limits
from opfl_chain.transport.routes import Request, Response, Route
from opfl_chain.transport.server import HttpServer
from opfl_chain.transport.tls import TlsFiles

LARGE = 1 << 26
BRIEF = Limits(head_seconds=1, receive_seconds=2, answer_seconds=1)


def post(headers: bytes, body: bytes = b"") -> bytes:
    return b"POST /echo HTTP/1.1\r\n" + headers + b"\r\n" + body


@pytest.mark.parametrize("size", [KILOBYTE + 1, 10**12])
def test_a_body_above_the_limit_is_refused_before_it_is_sent(size: int) -> None:
    with HttpServer("127.0.0.1:0", [ECHO]) as server, connect(server) as stream:
        stream.sendall(post(b"Content-Length: %d\r\n" % size))
        assert status_of(stream.recv(1000)) == 413


def test_a_peer_that_sends_too_much_all_the_same_learns_why(
    tls: TlsFiles, secure: HttpClient
) -> None:
    with (
        HttpServer("127.0.0.1:0", [ECHO], tls) as server,
        pytest.raises(PeerRefused, match="413: the body has 8388608 bytes; 1024 are allowed"),
    ):
        secure.post(server.url, NAME, "/echo", bytes(8 << 20), KILOBYTE)


def test_a_body_at_the_limit_passes(plain: HttpClient) -> None:
    with HttpServer("127.0.0.1:0", [ECHO]) as server:
        assert plain.post(server.url, NAME, "/echo", bytes(KILOBYTE), KILOBYTE) == bytes(KILOBYTE)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"", 411),
        (b"Transfer-Encoding: chunked\r\n", 411),
        (b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", 411),
        (b"Content-Length: 4\r\nContent-Length: 4\r\n", 400),
        (b"Content-Length: -1\r\n", 400),
        (b"Content-Length: +4\r\n", 400),
        (b"Content-Length: 4, 4\r\n", 400),
        (b"Content-Length: \xb2\r\n", 400),
        (b"Content-Length: 1e3\r\n", 400),
        (b"Content-Length:\r\n", 400),
        (b"Content-Length: %s\r\n" % (b"9" * 5000), 400),
    ],
)
def test_a_body_without_one_length_is_refused(headers: bytes, status: int) -> None:
    with HttpServer("127.0.0.1:0", [ECHO]) as server:
        assert status_of(answer_to(server, post(headers, b"body"))) == status


def test_a_body_that_ends_early_is_not_handled() -> None:
    handled: list[Request] = []
    route = Route("POST", "/echo", lambda request: handled.append(request) or Response(), 100)
    with HttpServer("127.0.0.1:0", [route]) as server:
        assert answer_to(server, post(b"Content-Length: 5\r\n", b"body")) == b""
    assert not handled


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(b"X: %s\r\n" % bytes(KILOBYTE).replace(b"\0", b"x"), id="one"),
        pytest.param(b"X: y\r\n" * 200, id="many"),
    ],
)
def test_headers_above_the_limit_are_refused(headers: bytes) -> None:
    with HttpServer("127.0.0.1:0", [HELLO], limits=Limits(header_bytes=KILOBYTE)) as server:
        assert status_of(answer_to(server, b"GET /hello HTTP/1.1\r\n" + headers + b"\r\n")) == 431
        assert status_of(answer_to(server, GET_HELLO)) == 200


@pytest.mark.parametrize("over_tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(GET_HELLO[:-1] * 10, id="headers"),
        pytest.param(post(b"Content-Length: 1000\r\n", bytes(500)), id="body"),
    ],
)
def test_a_peer_that_drips_is_cut_off(tls: TlsFiles, data: bytes, over_tls: bool) -> None:
    files: TlsFiles | None = tls if over_tls else None
    authority: Path | None = tls.authority if over_tls else None
    head, body = data.partition(b"\r\n\r\n")[::2] if b"Content" in data else (b"", data)
    with HttpServer("127.0.0.1:0", [ECHO, HELLO], files, BRIEF) as server:
        with connect(server, authority) as stream:
            stream.sendall(head + b"\r\n\r\n" if head else b"")
            assert drip(stream, body) < MOST_DRIP_SECONDS
        with HttpClient(authority) as client:
            assert client.get(server.url, NAME, "/hello", 100)


def test_a_peer_that_never_shakes_hands_is_cut_off(tls: TlsFiles) -> None:
    with HttpServer("127.0.0.1:0", [HELLO], tls, BRIEF) as server, connect(server) as stream:
        assert drip(stream, b"\x16\x03\x01\x02\x00" + bytes(500)) < MOST_DRIP_SECONDS


@pytest.mark.parametrize("over_tls", [False, True], ids=["plain", "tls"])
def test_a_peer_that_does_not_read_its_answer_is_cut_off(tls: TlsFiles, over_tls: bool) -> None:
    started = threading.Event()

    def large(_: Request) -> Response:
        started.set()
        return Response.binary(bytes(LARGE))

    files, authority = (tls, tls.authority) if over_tls else (None, None)
    with (
        HttpServer("127.0.0.1:0", [Route("GET", "/large", large)], files, BRIEF) as server,
        connect(server, authority) as stream,
    ):
        stream.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        assert started.wait(60)
        time.sleep(2 * BRIEF.answer_seconds)
        assert len(rest_of(stream)) < LARGE


def test_headers_that_are_late_are_not_waited_for() -> None:
    limits = Limits(head_seconds=0.5, receive_seconds=600)
    with HttpServer("127.0.0.1:0", [HELLO], limits=limits) as server, connect(server) as stream:
        stream.sendall(GET_HELLO[:-1])
        assert rest_of(stream) == b""


def test_an_address_that_asks_too_often_is_told_when_to_come_back() -> None:
    limits = Limits(requests_per_second=0.001, burst=3)
    with HttpServer("127.0.0.1:0", [HELLO], limits=limits) as server:
        answers = [answer_to(server, GET_HELLO) for _ in range(4)]
        assert [status_of(answer) for answer in answers] == [200, 200, 200, 429]
        assert 900 < int(answers[-1].partition(b"\r\nRetry-After: ")[2].split()[0]) <= 1000


def test_peer_that_waits_as_told_is_served(plain: HttpClient) -> None:
    limits = Limits(requests_per_second=1, burst=1)
    with HttpServer("127.0.0.1:0", [HELLO], limits=limits) as server:
        assert plain.get(server.url, NAME, "/hello", 100)
        assert plain.get(server.url, NAME, "/hello", 100)


def test_peer_that_cannot_wait_learns_why(plain: HttpClient) -> None:
    limits = Limits(requests_per_second=0.001, burst=1)
    with HttpServer("127.0.0.1:0", [ECHO], limits=limits) as server:
        assert plain.post(server.url, NAME, "/echo", b"1", 100)
        with pytest.raises(PeerRefused, match=r"429: more than 0\.001 requests a second") as caught:
            plain.post(server.url, NAME, "/echo", b"2", 100)
    assert caught.value.retry_after == pytest.approx(1000, abs=100)


@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_limit_that_lets_nothing_through_is_refused(value: float) -> None:
    with pytest.raises(LimitInvalid, match=r"receive_seconds is .*\. Give a number above 0"):
        Limits(receive_seconds=value)
