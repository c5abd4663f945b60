"""A bound on a whole request of ours.

httpx has timeouts for each read and write, so that a peer who drips its answer would hold us for
ever. When the time is over, the connection is shut under httpx, which then says that it broke.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final

_CONNECTED: Final = ("connection.connect_tcp.complete", "connection.start_tls.complete")


class Cutoff:
    """For one request, while it is entered. `trace` is for httpx, as the extension of that name."""

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event in _CONNECTED:
            self._socket = info["return_value"].get_extra_info("socket")
            if self.passed:
                self._cut()

    def __enter__(self) -> Cutoff:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()

    def _end(self) -> None:
        self.passed = True
        self._cut()

    def _cut(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # under TLS as well
