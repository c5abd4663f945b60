"""Sources of events: the logs of one chain of blocks, and new heads as a wake-up."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from opfl_chain.chain.contracts.contract import Log
from opfl_chain.chain.errors import ChainError, RangeRefused
from opfl_chain.chain.follow.store import Block
from opfl_chain.chain.rpc import Request, Rpc, is_loopback_url, shown_url
from opfl_chain.system.closing import Closing

BEFORE_GENESIS = Block(-1, "0x" + "00" * 32)
"""The parent of the genesis block."""
_LOGGER = logging.getLogger(__name__)
_SUBSCRIBE = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newHeads"]}
)
_OPEN_SECONDS = 5.0
_LOOK_UP_SECONDS = 0.5
_BACKOFF_FIRST = 0.1
_BACKOFF_LAST = 10.0


@dataclass(frozen=True)
class Segment:
    """Consecutive blocks up to the last of `blocks`, with all their logs in order."""

    blocks: tuple[Block, ...]
    logs: tuple[Log, ...]


class LogSource:
    def __init__(
        self, rpc: Rpc, addresses: Sequence[str], topics: Sequence[bytes], max_range: int
    ) -> None:
        self._rpc = rpc
        self._max_range = max_range
        self._range = max_range
        self._filter: dict[str, Any] = {"address": list(addresses)}
        if topics:
            self._filter["topics"] = [["0x" + topic.hex() for topic in topics]]

    def blocks(self, numbers: Sequence[int]) -> list[Block | None]:
        """Return the blocks; None where the node has no block of that number."""
        answers = iter(self._rpc.batch_or_raise([_header(n) for n in numbers if n >= 0]))
        return [BEFORE_GENESIS if n < 0 else _block(next(answers)) for n in numbers]

    def after(self, position: Block, target: int, volatile_from: int) -> Segment | None:
        """Return blocks after `position`, at most up to `target`, as many as the node allows.

        Blocks from `volatile_from` on may still be reorganised, so all are listed and linked by
        parent hash; of earlier ones only the last. None if the chain changed meanwhile.
        """
        first = position.number + 1
        while True:
            last = min(target, first + self._range - 1)
            if first < volatile_from <= last:
                last = volatile_from - 1
            numbers = range(first, last + 1) if first >= volatile_from else range(last, last + 1)
            span = {"fromBlock": hex(first), "toBlock": hex(last), **self._filter}
            *headers, logs = self._rpc.batch(
                [*(_header(number) for number in numbers), ("eth_getLogs", (span,))]
            )
            if isinstance(logs, RangeRefused) and last > first:
                self._range = (last - first + 1) // 2
                continue
            break
        for answer in (*headers, logs):
            if isinstance(answer, ChainError):
                raise answer
        self._range = min(2 * self._range, self._max_range)
        # The node answers a batch one by one, so the chain may change in between. If both ends of
        # the range are the same afterwards, it did not.
        if None in headers or self.blocks([position.number, last]) != [
            position,
            _block(headers[-1]),
        ]:
            return None
        linked = len(headers) == last - first + 1
        parents = [position.hash, *(header["hash"] for header in headers)]
        if linked and any(h["parentHash"] != p for h, p in zip(headers, parents, strict=False)):
            return None
        found = sorted(map(Log.from_rpc, logs), key=lambda log: (log.block_number, log.index))
        known = {int(header["number"], 16): header["hash"] for header in headers}
        if any(known.get(log.block_number, log.block_hash) != log.block_hash for log in found):
            return None
        return Segment(tuple(Block(*pair) for pair in known.items()), tuple(found))


def _header(number: int) -> Request:
    return ("eth_getBlockByNumber", (hex(number), False))


def _block(answer: Any) -> Block | None:
    return Block(int(answer["number"], 16), answer["hash"]) if answer else None


class HeadWatcher(Closing):
    """Calls `wake` on every new head, from its own thread, until closed.

    A lost connection is not an error: the watcher reconnects, without wake-ups until then.
    """

    def __init__(self, ws_url: str, wake: Callable[[], None]) -> None:
        if urlsplit(ws_url).scheme not in ("ws", "wss"):
            raise ValueError(f"{ws_url!r} is not a websocket URL: it must start with ws or wss")
        self._url = ws_url
        self._wake = wake
        self._proxy: Literal[True] | None = None if is_loopback_url(ws_url) else True
        self._closed = threading.Event()
        self._socket: Connection | None = None
        self._thread = threading.Thread(target=self._run, name="heads", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        if (socket := self._socket) is not None:
            socket.close()  # which ends the wait for the next head
        self._thread.join()

    def _run(self) -> None:
        backoff = _BACKOFF_FIRST
        while not self._closed.is_set():
            try:
                with connect(
                    self._url, open_timeout=_OPEN_SECONDS, close_timeout=1, proxy=self._proxy
                ) as socket:
                    self._socket = socket
                    socket.send(_SUBSCRIBE)
                    while not self._closed.is_set():
                        try:
                            socket.recv(timeout=_LOOK_UP_SECONDS)
                        except TimeoutError:
                            continue
                        backoff = _BACKOFF_FIRST
                        self._wake()
            except (OSError, TimeoutError, WebSocketException) as error:
                if self._closed.is_set():
                    return
                _LOGGER.info("%s: %s; polling until it reconnects", shown_url(self._url), error)
                self._closed.wait(backoff)
                backoff = min(2 * backoff, _BACKOFF_LAST)
