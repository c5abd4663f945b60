"""New heads on a websocket, as a wake-up for those who poll anyway."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from typing import Literal
from urllib.parse import urlsplit

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from opfl_chain.chain.rpc import is_loopback, shown_url

_LOGGER = logging.getLogger(__name__)
_SUBSCRIBE = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newHeads"]}
)
_OPEN_SECONDS = 5.0
_LOOK_UP_SECONDS = 0.5
_BACKOFF_FIRST = 0.1
_BACKOFF_LAST = 10.0


class HeadWatcher:
    """Calls `wake` on every new head, from a thread of its own, for as long as it is open.

    Losing the connection is no error: it is made again, and until then there are no wake-ups.
    """

    def __init__(self, ws_url: str, wake: Callable[[], None]) -> None:
        if urlsplit(ws_url).scheme not in ("ws", "wss"):
            raise ValueError(f"{ws_url!r} is no websocket address: it must begin with ws or wss")
        self._url = ws_url
        self._wake = wake
        self._proxy: Literal[True] | None = None if is_loopback(ws_url) else True
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heads", daemon=True)
        self._thread.start()

    def __enter__(self) -> HeadWatcher:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        backoff = _BACKOFF_FIRST
        while not self._closed.is_set():
            try:
                with connect(
                    self._url, open_timeout=_OPEN_SECONDS, close_timeout=1, proxy=self._proxy
                ) as socket:
                    socket.send(_SUBSCRIBE)
                    while not self._closed.is_set():
                        try:
                            socket.recv(timeout=_LOOK_UP_SECONDS)
                        except TimeoutError:
                            continue
                        backoff = _BACKOFF_FIRST
                        self._wake()
            except (OSError, TimeoutError, WebSocketException) as error:
                _LOGGER.info("%s: %s; polling until it is back", shown_url(self._url), error)
                self._closed.wait(backoff)
                backoff = min(2 * backoff, _BACKOFF_LAST)
