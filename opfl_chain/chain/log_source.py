"""Reads logs from a node so that they provably belong to one chain of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opfl_chain.chain.cursor_store import Block
from opfl_chain.chain.errors import ChainError, RangeRefused
from opfl_chain.chain.receipt import Log
from opfl_chain.chain.rpc import Request, Rpc

BEFORE_GENESIS = Block(-1, "0x" + "00" * 32)
"""What the genesis block names as its parent."""


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
        """None where the node has no block of that number."""
        answers = iter(self._rpc.batch_or_raise([_header(n) for n in numbers if n >= 0]))
        return [BEFORE_GENESIS if n < 0 else _block(next(answers)) for n in numbers]

    def after(self, position: Block, target: int, volatile_from: int) -> Segment | None:
        """The blocks after `position`, at most to `target`, and not more than the node gives.

        Blocks from `volatile_from` on may still be reorganised and are all listed and linked by
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
        # The questions of a batch are answered one by one, and the chain may have changed between
        # them. If its ends are the same afterwards, it did not.
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
