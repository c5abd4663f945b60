from __future__ import annotations

import json
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from transport_support import ECHO, GET_HELLO, HELLO, NAME, answer_to, connect, rest_of, status_of

from opfl_chain.transport.client import HttpClient
from opfl_chain.transport.errors import (
    AddressInUse,
    AddressInvalid,
    PeerRefused,
    PeerUnavailable,
    TlsRequired,
)
from opfl_chain.transport.limits import Limits
from opfl_chain.transport.routes import Refusal, Request, Response, Route
from opfl_chain.transport.server import HttpServer
from opfl_chain.transport.tls import TlsFiles


def test_handlers_see_what_was_asked_and_peers_what_was_answered(
    tls: TlsFiles, secure: HttpClient
) -> None:
    seen: list[Request] = []

    def handle(request: Request) -> Response:
        seen.append(request)
        return Response.json({"sum": request.json()["x"] + 1}, status=201)

    with HttpServer("127.0.0.1:0", [Route("POST", "/rounds/{round}", handle, 100)], tls) as server:
        assert server.url.startswith("https://127.0.0.1:")
        answer = secure.post(
            server.url, NAME, "/rounds/5?x=1", b'{"x": 6}', 100, headers={"Opfl-Signature": "0x7"}
        )
    assert json.loads(answer) == {"sum": 7}
    [request] = seen
    assert (request.method, request.path, request.parts) == ("POST", "/rounds/5", {"round": "5"})
    assert (request.body, request.remote) == (b'{"x": 6}', "127.0.0.1")
    assert request.headers["opfl-signature"] == "0x7"


def test_ipv6_is_served(plain: HttpClient) -> None:
    with HttpServer("[::1]:0", [HELLO]) as server:
        assert server.url.startswith("http://[::1]:")
        assert json.loads(plain.get(server.url, NAME, "/hello", 100)) == {"hello": "there"}


def test_a_refusal_is_told_and_a_failure_is_not(
    plain: HttpClient, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: Request) -> Response:
        raise Refusal(409, "round 7 is over")

    def fail(_: Request) -> Response:
        raise OSError("the secret is 42")

    routes = [Route("GET", "/refuse", refuse), Route("GET", "/fail", fail), HELLO]
    with HttpServer("127.0.0.1:0", routes) as server:
        with pytest.raises(PeerRefused, match="refused with status 409: round 7 is over"):
            plain.get(server.url, NAME, "/refuse", 100)
        with pytest.raises(PeerRefused, match="status 500: internal error") as caught:
            plain.get(server.url, NAME, "/fail", 100)
        assert plain.get(server.url, NAME, "/hello", 100)
    assert "secret" not in str(caught.value)
    [record] = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.exc_info and "the secret is 42" in str(record.exc_info[1])


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"NaN", b"[" * 900])
def test_a_body_that_is_not_json_is_refused(plain: HttpClient, body: bytes) -> None:
    route = Route("POST", "/json", lambda request: Response.json(request.json()), 1000)
    with (
        HttpServer("127.0.0.1:0", [route]) as server,
        pytest.raises(PeerRefused, match="status 400: the body is not JSON"),
    ):
        plain.post(server.url, NAME, "/json", body, 100)


def test_peers_that_ask_to_continue_are_told_to() -> None:
    with HttpServer("127.0.0.1:0", [ECHO]) as server, connect(server) as stream:
        head = b"POST /echo HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        stream.sendall(head)
        assert stream.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        stream.sendall(b"body")
        assert rest_of(stream).endswith(b"\r\n\r\nbody")


def test_fifty_requests_at_once_are_all_answered(tls: TlsFiles, secure: HttpClient) -> None:
    def ask(number: int) -> bool:
        body = bytes([number]) * 100_000
        return secure.post(server.url, NAME, "/echo", body, len(body)) == body

    route = Route("POST", "/echo", ECHO.handler, 100_000)
    with HttpServer("127.0.0.1:0", [route], tls) as server, ThreadPoolExecutor(50) as pool:
        assert all(pool.map(ask, range(50)))


def test_handshakes_do_not_hold_up_other_connections(tls: TlsFiles, secure: HttpClient) -> None:
    patient = Limits(receive_seconds=600)  # longer than the client waits
    with HttpServer("127.0.0.1:0", [HELLO], tls, patient) as server, connect(server):
        assert secure.get(server.url, NAME, "/hello", 100)


def test_closing_lets_requests_end_and_takes_no_more(plain: HttpClient) -> None:
    entered, leave = threading.Event(), threading.Event()

    def handle(_: Request) -> Response:
        entered.set()
        assert leave.wait(60)
        return Response.binary(b"done")

    server = HttpServer("127.0.0.1:0", [Route("GET", "/slow", handle)])
    server.start()
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(plain.get, server.url, NAME, "/slow", 100)
        assert entered.wait(60)
        closing = pool.submit(server.close, seconds=60)
        with pytest.raises(PeerUnavailable, match="does not answer"), HttpClient(None) as impatient:
            while True:
                impatient.post(server.url, NAME, "/nothing-here", b"", 100)
        assert not closing.done()
        leave.set()
        assert running.result() == b"done"
        closing.result()


def test_closing_cuts_off_whoever_takes_longer() -> None:
    server = HttpServer("127.0.0.1:0", [ECHO])
    server.start()
    with connect(server) as stream:
        stream.sendall(b"POST /echo HTTP/1.1\r\nContent-Length: 5\r\n\r\n")
        time.sleep(0.2)
        started = time.monotonic()
        server.close(seconds=0.2)
        assert time.monotonic() - started < Limits().receive_seconds
        assert rest_of(stream) == b""
    server.close()


def test_an_address_can_be_used_again_at_once(plain: HttpClient) -> None:
    with HttpServer("127.0.0.1:0", [HELLO]) as server:
        address = server.url.removeprefix("http://")
        plain.get(server.url, NAME, "/hello", 100)
        with pytest.raises(AddressInUse, match=f"cannot listen at {address}"):
            HttpServer(address, [HELLO]).start()
    with HttpServer(address, [HELLO]) as again:
        assert status_of(answer_to(again, GET_HELLO)) == 200


def test_off_loopback_there_is_no_server_without_tls() -> None:
    with pytest.raises(TlsRequired, match=r"0.0.0.0:80 is not a loopback address"):
        HttpServer("0.0.0.0:80", [])
    with pytest.raises(AddressInvalid, match="has no port"):
        HttpServer("127.0.0.1", [])
