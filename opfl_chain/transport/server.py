"""HTTP server with resource limits and one thread per connection.

Signatures in messages identify peers. A certificate, which members and server show and clients do
not have, gives them reserved connections and nothing else.
"""

from __future__ import annotations

import logging
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Sequence
from typing import Any, Final, Self

from opfl_chain.system.closing import Closing
from opfl_chain.transport.addresses import is_loopback, split_address
from opfl_chain.transport.deadline import Deadline
from opfl_chain.transport.errors import AddressInUse, TlsRequired
from opfl_chain.transport.exchange import Exchange
from opfl_chain.transport.limits import Limits, RateLimiter
from opfl_chain.transport.reception import Reception, Visit
from opfl_chain.transport.routes import Route, Router
from opfl_chain.transport.stream import Stream
from opfl_chain.transport.tls import TlsFiles

_LOGGER = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.1
_PAUSE_SECONDS: Final = 0.1
"""Pause after a failed accept, for example without free descriptors, to avoid a busy loop."""
_CLOSE_SECONDS: Final = 5.0
_CUT_SECONDS: Final = 1.0
"""Longest wait for the thread of a connection that was cut off, so that threads do not pile up."""


class _Listener(socketserver.TCPServer):
    """Accepts connections; a thread per connection does the rest."""

    allow_reuse_address = True
    request_queue_size = 1024

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
        self._reception = Reception(limits)
        self._running: set[Visit] = set()
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
        """Start a thread. If there is no place left, the longest idle connection is cut off."""
        visit = Visit(Stream(request), client_address[0])
        visit.thread = threading.Thread(
            target=self._serve, args=(visit,), name=self._name, daemon=True
        )
        with self._lock:
            self._running.add(visit)
        displaced = self._reception.admit(visit)
        try:
            visit.thread.start()
        except RuntimeError:
            self._forget(visit)
            raise
        if displaced is not None:
            _LOGGER.info("%s: cut off %s, idle for longest", self._name, displaced.remote)
            _join(displaced, _CUT_SECONDS)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _LOGGER.exception("%s failed to serve %s", self._name, client_address)

    def finish(self, seconds: float) -> None:
        """Wait for running requests, then cut off those that take longer."""
        deadline = Deadline(seconds)
        for visit in self._visits():
            _join(visit, deadline.remaining)
        for visit in self._visits():
            visit.stream.cut()
            _join(visit, _POLL_SECONDS)

    def _visits(self) -> list[Visit]:
        with self._lock:
            return list(self._running)

    def _serve(self, visit: Visit) -> None:
        try:
            Exchange(
                visit, self._reception, self._router, self._limits, self._rate, self._tls
            ).run()
        except Exception:
            _LOGGER.exception("%s failed to serve %s", self._name, visit.remote)
        finally:
            visit.stream.close()
            self._forget(visit)

    def _forget(self, visit: Visit) -> None:
        self._reception.leave(visit)
        with self._lock:
            self._running.discard(visit)


def _join(visit: Visit, seconds: float) -> None:
    if visit.thread is not None:
        visit.thread.join(seconds)


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
        self._tls = tls.http_server_context() if tls else None
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
