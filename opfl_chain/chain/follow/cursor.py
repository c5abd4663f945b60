"""Follows contract events and handles each exactly once, through reorganisations.

Handlers get a SQLite connection and a log. What they write is committed in the same transaction
as the cursor's position, so neither a crash nor an error can separate the two. A journal records
how to undo every write (see `journal.py`); when the chain is reorganised, the cursor rewinds the
tables to the common ancestor and handles the new blocks. Handlers therefore contain no code for
either case. They must not act outside the database: daemons read the tables after a step and act
then.

The cursor requests only block headers and logs of a bounded, existing range. It uses no server-side
filters, which nodes lose; new heads on a websocket are only a wake-up.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opfl_chain.chain.contracts.contract import Log
from opfl_chain.chain.errors import ChainMismatch, ReorgTooDeep
from opfl_chain.chain.follow.sources import LogSource
from opfl_chain.chain.follow.store import Block, CursorStore
from opfl_chain.chain.rpc import Rpc
from opfl_chain.system.closing import Closing

Handler = Callable[[sqlite3.Connection, Log], None]

_LOGGER = logging.getLogger(__name__)
_DISTURBED_SECONDS = 0.1
"""Pause after the chain changed while it was read."""


@dataclass(frozen=True)
class Step:
    """The result of one step."""

    position: int
    """The last handled block."""
    target: int
    """The last block with enough confirmations to be handled."""
    handled: int = 0
    """Number of logs handled."""
    rewound_to: int | None = None
    """The common ancestor, if the chain was reorganised."""
    disturbed: bool = False
    """True if the chain changed while it was read; nothing was handled."""
    hash: str | None = field(default=None, compare=False)
    """The hash of the last handled block, once there is nothing else to do."""

    @property
    def caught_up(self) -> bool:
        return self.rewound_to is None and self.position >= self.target


class EventCursor(Closing):
    """A position in the chain's events. `schema` creates the handler's tables, `tables` names them.

    `confirmations` is the number of blocks on top of a block before it is handled, `window` the
    number of handled blocks that can be undone, `max_range` the most blocks per request.
    """

    def __init__(
        self,
        rpc: Rpc,
        database: Path,
        name: str,
        addresses: Sequence[str],
        handler: Handler,
        *,
        schema: str = "",
        tables: tuple[str, ...] = (),
        topics: Sequence[bytes] = (),
        start_block: int = 0,
        confirmations: int = 0,
        window: int = 128,
        max_range: int = 1000,
    ) -> None:
        self.name = name
        self._rpc = rpc
        self._handler = handler
        self._start = start_block
        self._confirmations = confirmations
        self._window = window
        self._source = LogSource(rpc, addresses, topics, max_range)
        self._genesis = rpc.genesis_hash()
        self._store = CursorStore(database, name, self._genesis, schema, tables, window)
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            self._store.close()

    def step(self) -> Step:
        """Rewind if the chain was reorganised, else handle the next range of blocks."""
        with self._lock:
            head = self._rpc.block_number()
            target = head - self._confirmations
            known = self._store.blocks() or self._begin(head)
            if not known:
                return Step(self._start - 1, self._start - 1)
            position = known[0]
            ancestor = self._common_ancestor(known, head)
            if ancestor != position:
                with self._store.transaction():
                    self._store.rewind(ancestor)
                _LOGGER.warning("%s: chain reorganised, rewound to %d", self.name, ancestor.number)
                return Step(ancestor.number, target, rewound_to=ancestor.number)
            if position.number >= target:
                return Step(position.number, target, hash=position.hash)
            segment = self._source.after(position, target, head - self._window)
            if segment is None:
                return Step(position.number, target, disturbed=True)
            with self._store.transaction():
                if self._store.blocks()[0] != position:  # another process was faster
                    return Step(position.number, target, disturbed=True)
                with self._store.journal.recording() as set_block:
                    for log in segment.logs:
                        set_block(log.block_number)
                        self._handler(self._store.db, log)
                self._store.advance(segment.blocks)
            last = segment.blocks[-1]
            return Step(last.number, target, len(segment.logs), hash=last.hash)

    def catch_up(self) -> Step:
        """Step until the last confirmed block is handled."""
        while not (step := self.step()).caught_up:
            if step.disturbed:
                time.sleep(_DISTURBED_SECONDS)
        return step

    def _begin(self, head: int) -> list[Block]:
        """Start from the block before the first; empty while the node does not have it."""
        if self._start - 1 > head:
            return []
        (before,) = self._source.blocks([self._start - 1])
        if before is None:
            return []
        with self._store.transaction():
            self._store.advance([before])
        return [before]

    def _common_ancestor(self, known: list[Block], head: int) -> Block:
        """Return the newest of our blocks that is on the node's chain.

        A node with fewer blocks than we have handled, all identical, is merely behind: the
        position stays.
        """
        comparable = [block for block in known if block.number <= head]
        if not comparable:
            return known[0]
        (found,) = self._source.blocks([comparable[0].number])
        if found == comparable[0]:
            return known[0]
        found_all = self._source.blocks([block.number for block in comparable])
        for block, found in zip(comparable, found_all, strict=True):
            if block == found:
                return block
        if (genesis := self._rpc.genesis_hash()) != self._genesis:
            raise ChainMismatch(
                f"cursor {self.name!r} (genesis block)",
                self._genesis,
                genesis,
                "The node now serves another chain: use a fresh database for it.",
            )
        raise ReorgTooDeep(self.name, known[-1].number, known[0].number)
