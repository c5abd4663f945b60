"""Deadlines of operations, and a cutoff that holds a request to its deadline."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from opfl_chain.system.closing import Closing

_CONNECTED: Final = ("connection.connect_tcp.complete", "connection.start_tls.complete")


@dataclass(frozen=True)
class Deadline:
    """`seconds` after `started`, on a monotonic clock that child processes share."""

    seconds: float
    started: float = field(default_factory=time.monotonic)

    @property
    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.started + self.seconds - time.monotonic())

    @property
    def passed(self) -> bool:
        return not self.remaining


class Cutoff(Closing):
    """Context manager for one request. Pass `trace` to httpx as the extension of that name."""

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

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def close(self) -> None:
        self._timer.cancel()

    def _end(self) -> None:
        self.passed = True
        self._cut()

    def _cut(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # under TLS as well
