"""The server survives arbitrary bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transport_support import ECHO, GET_HELLO, HELLO, answer_to, status_of

from opfl_chain.transport.limits import Limits
from opfl_chain.transport.server import HttpServer

PIECES = [
    b"GET",
    b"POST",
    b" ",
    b"/hello",
    b"/echo",
    b"HTTP/1.1",
    b"HTTP/",
    b"\r\n",
    b"\n",
    b"\r",
    b":",
    b"Content-Length",
    b"Transfer-Encoding",
    b"Expect: 100-continue",
    b"chunked",
    b"4",
    b"999999999999999999999999",
    b"\x00",
    b"\xff",
    b"%",
    b"?",
    b"..",
]


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    limits = Limits(receive_seconds=60, header_bytes=2048, requests_per_second=1e6, burst=10**6)
    with HttpServer("127.0.0.1:0", [ECHO, HELLO], limits=limits) as running:
        yield running


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\r\n\r\n", 400),
        (b"\n\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET /hello\r\n\r\n", 400),
        (b"GET /hello HTTP/0.9\r\n\r\n", 400),
        (b"GET /hello HTTP/2.0\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"GET /hello HTTP/1.1.1\r\n\r\n", 400),
        (b"GET /hello HTTP/x\r\n\r\n", 400),
        (b"GET /hello there HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"\x00" * 100 + b"\r\n\r\n", 400),
        (b"GET hello HTTP/1.1\r\n\r\n", 404),
        (b"GET http://us/hello HTTP/1.1\r\n\r\n", 404),
        (b"GET /../hello HTTP/1.1\r\n\r\n", 404),
        (b"GET /%zz HTTP/1.1\r\n\r\n", 404),
        (b"HEAD /hello HTTP/1.1\r\n\r\n", 405),
        (b"__init__ /hello HTTP/1.1\r\n\r\n", 405),
        (b"GET /hello HTTP/1.1\r\nX: y\r\n" + b"A: b\r\n" * 101 + b"\r\n", 431),
        (b"GET /" + b"a" * 3000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET /hello HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", 413),
        (b"GET /hello HTTP/1.0\r\n\r\n", 200),
        (b"GET /hello?x HTTP/1.1\n\n", 200),
        (b"GET /hello HTTP/1.1\r\n\r\n" + GET_HELLO, 200),
    ],
)
def test_malformed_requests_are_refused(server: HttpServer, sent: bytes, status: int) -> None:
    answer = answer_to(server, sent)
    assert status_of(answer) == status
    assert answer.count(b"HTTP/1.1 ") == 1
    assert status_of(answer_to(server, GET_HELLO)) == 200


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=8)), max_size=20))
def test_any_bytes_leave_the_server_running(server: HttpServer, pieces: list[bytes]) -> None:
    answer = answer_to(server, b"".join(pieces))
    assert not answer or 100 <= status_of(answer) < 500
    assert status_of(answer_to(server, GET_HELLO)) == 200
