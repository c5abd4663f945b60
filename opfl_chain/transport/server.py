"""HTTP server with resource limits and one thread per connection.

Peers present no certificates: signatures in their messages identify them.
"""

from __future__ import annotations

import logging
import socket
import socketserver
import ssl
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Self

from opfl_chain.system.closing import Closing
from opfl_chain.transport.addresses import is_loopback, split_address
from opfl_chain.transport.deadline import Deadline
from opfl_chain.transport.errors import AddressInUse, TlsRequired
from opfl_chain.transport.exchange import Exchange, Stream
from opfl_chain.transport.limits import Limits, RateLimiter, sender_of
from opfl_chain.transport.routes import Route, Router
from opfl_chain.transport.tls import TlsFiles

_LOGGER = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.1
_PAUSE_SECONDS: Final = 0.1
"""Pause after a failed accept, for example without free descriptors, to avoid a busy loop."""
_CLOSE_SECONDS: Final = 5.0


class _Listener(socketserver.TCPServer):
    """Accepts connections; a thread per connection does the rest."""

    allow_reuse_address = True
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        name: str,
        router: Router,
        tls: ssl.SSLContext | None,
        limits: Limits,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._name = name
        self._router = router
        self._tls = tls
        self._limits = limits
        self._rate = RateLimiter(limits.requests_per_second, limits.burst)
        self._running: dict[threading.Thread, Stream] = {}
        self._from: Counter[str] = Counter()
        self._lock = threading.Lock()
        super().__init__(address, socketserver.BaseRequestHandler)

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError as error:
            _LOGGER.warning("%s cannot accept a connection: %s", self._name, error)
            time.sleep(_PAUSE_SECONDS)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread, unless the connection limit is reached."""
        remote, stream = client_address[0], Stream(request)
        sender = sender_of(remote)
        with self._lock:
            full = (
                len(self._running) >= self._limits.connections
                or self._from[sender] >= self._limits.connections_per_address
            )
            if not full:
                thread = threading.Thread(
                    target=self._serve, args=(stream, remote), name=self._name, daemon=True
                )
                self._running[thread] = stream
                self._from[sender] += 1
        if full:
            _LOGGER.warning("%s: connection limit reached, refused %s", self._name, remote)
            stream.close()
            return
        try:
            thread.start()
        except RuntimeError:
            self._forget(thread, sender)
            raise

    def handle_error(self, request: Any, client_address: Any) -> None:
        _LOGGER.exception("%s failed to serve %s", self._name, client_address)

    def finish(self, seconds: float) -> None:
        """Wait for running requests, then cut off those that take longer."""
        deadline = Deadline(seconds)
        for thread in self._threads():
            thread.join(deadline.remaining)
        with self._lock:
            late = dict(self._running)
        for thread, stream in late.items():
            stream.cut()
            thread.join(_POLL_SECONDS)

    def _threads(self) -> list[threading.Thread]:
        with self._lock:
            return list(self._running)

    def _serve(self, stream: Stream, remote: str) -> None:
        try:
            Exchange(stream, remote, self._router, self._limits, self._rate, self._tls).run()
        except Exception:
            _LOGGER.exception("%s failed to serve %s", self._name, remote)
        finally:
            stream.close()
            self._forget(threading.current_thread(), sender_of(remote))

    def _forget(self, thread: threading.Thread, sender: str) -> None:
        with self._lock:
            del self._running[thread]
            self._from[sender] -= 1
            if not self._from[sender]:
                del self._from[sender]


class HttpServer(Closing):
    """Serves from `start` to `close`, or as a context manager.

    `address` is host:port; port 0 picks a free port. Without TLS it must be a loopback address.
    """

    def __init__(
        self,
        address: str,
        routes: Sequence[Route],
        tls: TlsFiles | None = None,
        limits: Limits | None = None,
        name: str = "http",
    ) -> None:
        self._host, self._port = split_address(address, any_port=True)
        if tls is None and not is_loopback(self._host):
            raise TlsRequired(address)
        self._scheme = "https" if tls else "http"
        self._tls = tls.open_server_context() if tls else None
        self._router = Router(routes)
        self._limits = limits or Limits()
        self._name = name
        self._listener: _Listener | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The URL for clients on this machine."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{self._scheme}://{host}:{self._port}"

    def start(self) -> None:
        try:
            listener = _Listener(
                (self._host, self._port), self._name, self._router, self._tls, self._limits
            )
        except OSError as error:
            raise AddressInUse(f"{self._host}:{self._port}", str(error)) from error
        self._port = listener.server_address[1]
        self._listener = listener
        self._thread = threading.Thread(
            target=listener.serve_forever, args=(_POLL_SECONDS,), name=self._name, daemon=True
        )
        self._thread.start()

    def close(self, seconds: float = _CLOSE_SECONDS) -> None:
        """Accept no more requests, and give running ones `seconds` to end."""
        if self._listener is None or self._thread is None:
            return
        listener, self._listener = self._listener, None
        listener.shutdown()
        self._thread.join()
        listener.server_close()
        listener.finish(seconds)

    def __enter__(self) -> Self:
        self.start()
        return self
