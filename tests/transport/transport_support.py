"""Raw connections, both ends, without an HTTP library."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from opfl_chain.transport.routes import Request, Response, Route
from opfl_chain.transport.server import HttpServer

NAME = "member-0"
KILOBYTE = 1024
_PATIENCE_SECONDS = 120.0


def echo(request: Request) -> Response:
    return Response.binary(request.body)


ECHO = Route("POST", "/echo", echo, KILOBYTE)
HELLO = Route("GET", "/hello", lambda _: Response.json({"hello": "there"}))
GET_HELLO = b"GET /hello HTTP/1.1\r\nHost: us\r\n\r\n"


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def connect(server: HttpServer, authority: Path | None = None) -> socket.socket:
    plain = socket.create_connection(("127.0.0.1", port_of(server.url)), _PATIENCE_SECONDS)
    if authority is None:
        return plain
    return ssl.create_default_context(cafile=authority).wrap_socket(plain, server_hostname=NAME)


def answer_to(server: HttpServer, sent: bytes) -> bytes:
    """Return everything received until the server closes; empty if it resets."""
    with connect(server) as stream:
        with contextlib.suppress(OSError):
            stream.sendall(sent)
            stream.shutdown(socket.SHUT_WR)
        return rest_of(stream)


def rest_of(stream: socket.socket) -> bytes:
    """Receive until the connection ends or breaks."""
    received = bytearray()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while chunk := stream.recv(1 << 16):
            received += chunk
    return bytes(received)


def status_of(answer: bytes) -> int:
    version, status, _ = answer.split(b" ", 2)
    assert version == b"HTTP/1.1"
    return int(status)


DRIP_PAUSE_SECONDS = 0.2
MOST_DRIP_SECONDS = 60.0
"""Less than 320 bytes take, and far more than it takes to cut a peer off."""


def drip(stream: socket.socket, data: bytes) -> float:
    """Send byte by byte until the other end closes, and return the seconds it took."""
    started = time.monotonic()
    with contextlib.suppress(OSError):
        for position in range(len(data)):
            stream.sendall(data[position : position + 1])
            time.sleep(DRIP_PAUSE_SECONDS)
    return time.monotonic() - started


@contextlib.contextmanager
def peer_that(act: Callable[[socket.socket], None]) -> Iterator[str]:
    """Yield the URL of a listener that handles every connection so, then closes it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                stream, _ = listener.accept()
            except OSError:
                return
            with stream, contextlib.suppress(OSError):
                stream.settimeout(_PATIENCE_SECONDS)
                act(stream)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
