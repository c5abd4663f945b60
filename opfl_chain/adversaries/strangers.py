"""Attacks that need no part in a job, nothing but the address of a port. By name."""

from __future__ import annotations

import ipaddress
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from typing import Final

from opfl_chain.adversaries.clients import cheats_of
from opfl_chain.system.closing import Closing
from opfl_chain.transport.addresses import is_loopback, split_address

_PAUSE_SECONDS: Final = 0.05
_OPENED_AT_ONCE: Final = 100
"""New connections between two pauses."""
_FIRST_SOURCE: Final = ipaddress.IPv4Address("127.1.0.1")


class Stranger(Closing):
    """Attacks a port, `host:port`, in a thread of its own, from its construction until closed."""

    def __init__(self, target: str, connections: int, addresses: int = 1) -> None:
        """The connections come from `addresses` addresses of 127.0.0.0/8 if the target is on
        loopback, else from the one that this machine has."""
        self._target = split_address(target)
        self._connections = connections
        self._sources = _sources(self._target[0], addresses)
        self.opened = 0
        """Connections opened so far."""
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._attack, name="stranger", daemon=True)
        self._thread.start()

    def _attack(self) -> None:
        """Attack until `_ending` is set. An honest stranger does not."""

    def close(self) -> None:
        self._ending.set()
        self._thread.join()


class IdleConnections(Stranger):
    """Holds connections on which it says nothing, and opens each again that is closed."""

    def _attack(self) -> None:
        with selectors.DefaultSelector() as selector:
            while not self._ending.wait(_PAUSE_SECONDS):
                for key, _ in selector.select(0):  # closed, or told that it is late
                    selector.unregister(key.fileobj)
                    key.data.close()
                missing = self._connections - len(selector.get_map())
                for _ in range(min(missing, _OPENED_AT_ONCE)):
                    if (stream := self._connect()) is None:
                        break
                    selector.register(stream, selectors.EVENT_READ, stream)
            for key in list(selector.get_map().values()):
                key.data.close()

    def _connect(self) -> socket.socket | None:
        with suppress(OSError):
            stream = socket.create_connection(
                self._target, timeout=_PAUSE_SECONDS, source_address=next(self._sources)
            )
            self.opened += 1
            return stream
        return None


def _sources(host: str, addresses: int) -> Iterator[tuple[str, int] | None]:
    if not is_loopback(host) or ":" in host or addresses == 1:
        return cycle([None])
    return cycle([(str(_FIRST_SOURCE + number), 0) for number in range(addresses)])


STRANGERS: Final = cheats_of("strangers", Stranger, {"idle-connections": IdleConnections})
