"""Bytes that went out and came in."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from opfl_chain.transport.messages import Request, Response
from opfl_chain.transport.routes import Route


class Traffic:
    """Counts bodies of requests that were answered. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent = self._received = 0

    def counted(self, route: Route) -> Route:
        def handle(request: Request) -> Response:
            response = route.handler(request)
            with self._lock:
                self._sent += len(response.body)
                self._received += len(request.body)
            return response

        return Route(route.method, route.pattern, handle, route.max_body_bytes)

    def added_to(self, asked: Mapping[str, int]) -> dict[str, int]:
        """With what this daemon asked others for itself."""
        with self._lock:
            return {
                "bytes_sent": asked["bytes_sent"] + self._sent,
                "bytes_received": asked["bytes_received"] + self._received,
            }
