from __future__ import annotations

import gc
import socket
import struct
import time
from pathlib import Path

import pytest
from transport_support import ECHO, HELLO, KILOBYTE, MOST_DRIP_SECONDS, NAME, drip, peer_that

from opfl_chain.transport.certificates import Authority
from opfl_chain.transport.client import HttpClient
from opfl_chain.transport.errors import (
    AnswerMalformed,
    AnswerTooLarge,
    CertificateRefused,
    PeerRefused,
    PeerUnavailable,
    TlsInvalid,
    TlsRequired,
    TransportError,
    UrlInvalid,
)
from opfl_chain.transport.limits import Limits
from opfl_chain.transport.routes import Refusal, Request, Response, Route
from opfl_chain.transport.server import HttpServer
from opfl_chain.transport.tls import TlsFiles, client_context


def says(answer: bytes):
    """Run a peer that reads a request and sends this response."""

    def act(stream: socket.socket) -> None:
        stream.recv(1 << 16)
        stream.sendall(answer)

    return peer_that(act)


# --- certificates


def test_another_name_under_our_authority_is_refused(
    authority: Authority, tls: TlsFiles, secure: HttpClient
) -> None:
    with HttpServer("127.0.0.1:0", [HELLO], tls) as server:
        assert secure.get(server.url, NAME, "/hello", 100)
        with pytest.raises(CertificateRefused, match="valid for 'member-1' under our authority"):
            secure.get(server.url, "member-1", "/hello", 100)
        assert secure.get(server.url, NAME, "/hello", 100)


def test_the_right_name_under_another_authority_is_refused(
    tls: TlsFiles, another_authority: Path
) -> None:
    with (
        HttpServer("127.0.0.1:0", [HELLO], tls) as server,
        HttpClient(another_authority) as client,
        pytest.raises(CertificateRefused, match=r"self-signed|local issuer") as caught,
    ):
        client.get(server.url, NAME, "/hello", 100)
    assert caught.value.url == f"{server.url}/hello"


def test_a_certificate_that_has_run_out_is_refused(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path)
    expired = authority.issue(NAME, days=0)
    with (
        HttpServer("127.0.0.1:0", [HELLO], expired) as server,
        HttpClient(authority.certificate) as client,
        pytest.raises(CertificateRefused, match="expired"),
    ):
        client.get(server.url, NAME, "/hello", 100)


def test_a_connection_to_one_name_serves_no_other(tls: TlsFiles, secure: HttpClient) -> None:
    """Closed even if the peer would keep it open."""
    context = tls.http_server_context()
    served = []

    def keep_answering(stream: socket.socket) -> None:
        with context.wrap_socket(stream, server_side=True) as secured:
            while secured.recv(1 << 16):
                served.append(1)
                secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with peer_that(keep_answering) as url:
        secured_url = url.replace("http:", "https:")
        assert secure.get(secured_url, NAME, "/", 100) == b"ok"
        with pytest.raises(CertificateRefused):
            secure.get(secured_url, "member-1", "/", 100)
    assert len(served) == 1


def test_a_peer_without_tls_is_not_spoken_to(authority: Authority) -> None:
    with (
        HttpServer("127.0.0.1:0", [HELLO], limits=Limits(receive_seconds=0.5)) as server,
        HttpClient(authority.certificate, attempts=1) as secure,
    ):
        with pytest.raises(PeerUnavailable):
            secure.get(server.url.replace("http:", "https:"), NAME, "/hello", 100)
        with pytest.raises(UrlInvalid, match="because an authority is set"):
            secure.get(server.url, NAME, "/hello", 100)


def test_without_an_authority_only_loopback_is_asked(plain: HttpClient) -> None:
    with pytest.raises(TlsRequired, match=r"http://192.0.2.1:80"):
        plain.get("http://192.0.2.1:80", NAME, "/hello", 100)
    with pytest.raises(UrlInvalid, match="because no authority is set"):
        plain.get("https://127.0.0.1:80", NAME, "/hello", 100)


def test_an_authority_that_is_no_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "authority.pem").write_text("hello")
    for name in ("authority.pem", "missing.pem"):
        with pytest.raises(TlsInvalid, match=f"{name} is not a PEM certificate file"):
            HttpClient(tmp_path / name)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "member.example",
        "ftp://127.0.0.1",
        "http://",
        "http://127.0.0.1:99999",
        "http://user:password@127.0.0.1",
        "http://127.0.0.1/?a=b",
        "http://127.0.0.1/#a",
        "http://\x00",
        "http://h\\xff",
        "http://[::1",
        "h" * 200,
    ],
)
def test_malformed_url_is_refused(plain: HttpClient, url: str) -> None:
    with pytest.raises(TransportError) as caught:
        plain.get(url, NAME, "/", 100)
    assert isinstance(caught.value, UrlInvalid | TlsRequired)


# --- requests


def test_paths_are_under_the_url(plain: HttpClient) -> None:
    route = Route("GET", "/base/hello", HELLO.handler)
    with HttpServer("127.0.0.1:0", [route]) as server:
        for url in (f"{server.url}/base", f"{server.url}/base/"):
            assert plain.get(url, NAME, "/hello", 100)


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.lower(), "http://127.0.0.1:9")
    with HttpServer("127.0.0.1:0", [HELLO]) as server, HttpClient(None) as client:
        assert client.get(server.url, NAME, "/hello", 100)


# --- unavailable peers and retries


def test_a_peer_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (
        HttpClient(None, attempts=1) as client,
        pytest.raises(PeerUnavailable, match=f"http://127.0.0.1:{port}/x does not answer .*Is it"),
    ):
        client.get(f"http://127.0.0.1:{port}", NAME, "/x", 100)


def test_only_what_does_no_harm_is_tried_again() -> None:
    asked = []

    def hang_up(stream: socket.socket) -> None:
        asked.append(stream.recv(1 << 16).split(b" ")[0])

    with peer_that(hang_up) as url, HttpClient(None, attempts=3) as client:
        with pytest.raises(PeerUnavailable):
            client.get(url, NAME, "/", 100)
        assert asked == [b"GET"] * 3
        with pytest.raises(PeerUnavailable):
            client.post(url, NAME, "/", b"", 100)
        assert asked[3:] == [b"POST"]
        with pytest.raises(PeerUnavailable):
            client.post(url, NAME, "/", b"", 100, idempotent=True)
        assert asked[4:] == [b"POST"] * 3


def test_a_refusal_that_stays_is_not_asked_again(plain: HttpClient) -> None:
    asked: list[Request] = []

    def refuse(request: Request) -> Response:
        asked.append(request)
        raise Refusal(404 if request.parts["kind"] == "stays" else 503, "no")

    with HttpServer("127.0.0.1:0", [Route("GET", "/{kind}", refuse)]) as server:
        with pytest.raises(PeerRefused, match="404"):
            plain.get(server.url, NAME, "/stays", 100)
        assert len(asked) == 1
        with pytest.raises(PeerRefused, match="503"):
            plain.get(server.url, NAME, "/passes", 100)
        assert len(asked) == 4


@pytest.mark.parametrize(
    "dripped",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 500, id="headers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + bytes(480), id="body"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(480), id="body without length"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_an_answer_that_drips_is_given_up(dripped: bytes) -> None:
    def act(stream: socket.socket) -> None:
        stream.recv(1 << 16)
        drip(stream, dripped)
        stream.recv(1)

    with peer_that(act) as url, HttpClient(None, seconds=0.5, attempts=1) as client:
        started = time.monotonic()
        with pytest.raises((PeerUnavailable, AnswerMalformed)):
            client.get(url, NAME, "/", KILOBYTE)
        assert time.monotonic() - started < MOST_DRIP_SECONDS


# --- responses


def test_answers_above_the_limit_are_refused(plain: HttpClient) -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n" + bytes(64) + b"\r\n"
    stated = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"
    for answer in (chunked, stated):
        with says(answer) as url, pytest.raises(AnswerTooLarge, match="than the 63 bytes allowed"):
            plain.get(url, NAME, "/", 63)


def test_an_answer_at_the_limit_passes(plain: HttpClient) -> None:
    with HttpServer("127.0.0.1:0", [ECHO]) as server:
        assert plain.post(server.url, NAME, "/echo", bytes(64), 64) == bytes(64)


def test_nothing_is_decompressed(plain: HttpClient) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Encoding: gzip\r\n\r\nabcd"
    with says(answer) as url:
        assert plain.get(url, NAME, "/", 100) == b"abcd"


def test_redirections_are_not_followed(plain: HttpClient) -> None:
    answer = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://127.0.0.1:1/\r\n\r\n"
    with says(answer) as url, pytest.raises(PeerRefused, match="status 302"):
        plain.get(url, NAME, "/", 100)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": "round 7 is over"}', "status 409: round 7 is over$"),
        (b'{"error": "two\\nlines \\u001b[31m"}', r"status 409: two\\nlines \\x1b\[31m$"),
        (b"[]", "status 409: Conflict$"),
        (b"[" * 4000, "status 409: Conflict$"),
        (b"\xff", "status 409: Conflict$"),
        (b"x" * 10_000, "status 409: Conflict$"),
    ],
)
def test_why_a_peer_refuses_is_shown_safely(plain: HttpClient, body: bytes, message: str) -> None:
    answer = b"HTTP/1.1 409 Conflict\r\nContent-Length: %d\r\n\r\n" % len(body)
    with says(answer + body) as url, pytest.raises(PeerRefused, match=message):
        plain.get(url, NAME, "/", 100)


@pytest.mark.parametrize(
    "answer",
    [
        b"hello",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\n\r\nwithout a length",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000,
        bytes(100),
    ],
)
def test_nonsense_is_an_error_of_ours(answer: bytes) -> None:
    with (
        says(answer) as url,
        HttpClient(None, attempts=1) as client,
        pytest.raises((PeerUnavailable, AnswerMalformed)),
    ):
        client.get(url, NAME, "/", 100)


def test_a_socket_that_its_peer_reset_before_the_handshake_is_closed(authority: Authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    theirs.close()  # at once, which resets the connection
    time.sleep(0.05)
    with pytest.raises(ConnectionResetError):
        client_context(authority.certificate).wrap_socket(ours, server_hostname=NAME)
    del ours
    gc.collect()  # warnings are errors: one would say that it was left open
