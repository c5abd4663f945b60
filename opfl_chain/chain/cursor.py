"""Follows the events of some contracts, each handled exactly once, through reorganisations.

Handlers get a SQLite connection and a log. What they write is committed in the same transaction
as the cursor's position, so neither a crash nor an error can separate the two. A journal records
how to undo every write (see `journal.py`); when the chain is reorganised, the cursor rewinds the
tables to the common ancestor and handles the new blocks. Handlers therefore contain no code for
either case. What they must not do is act outside the database: daemons look at the tables after a
step and act then.

The node is only ever asked for block headers and for logs of a bounded range that exists. There
are no server-side filters, which nodes lose, and new heads on a websocket are a wake-up only.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opfl_chain.chain.cursor_store import Block, CursorStore
from opfl_chain.chain.errors import ChainMismatch, ReorgTooDeep, RpcUnavailable
from opfl_chain.chain.log_source import LogSource
from opfl_chain.chain.receipt import Log
from opfl_chain.chain.rpc import Rpc

Handler = Callable[[sqlite3.Connection, Log], None]

_LOGGER = logging.getLogger(__name__)
_BACKOFF_FIRST = 0.1
_BACKOFF_LAST = 5.0


@dataclass(frozen=True)
class Step:
    """What one step did."""

    position: int
    """The last block that is handled."""
    target: int
    """The last block that could be, with enough confirmations."""
    handled: int = 0
    """How many logs were handled."""
    rewound_to: int | None = None
    """The common ancestor, if the chain was reorganised."""
    disturbed: bool = False
    """The chain changed while it was read, so nothing was done."""

    @property
    def caught_up(self) -> bool:
        return self.rewound_to is None and self.position >= self.target


class EventCursor:
    """`schema` creates the handler's tables, `tables` names them.

    `confirmations` is how many blocks must lie on top of a block before it is handled, `window`
    how many handled blocks can be undone, `max_range` how many blocks are asked for at once.
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
        self._wake = threading.Event()
        self._stopped = False

    def __enter__(self) -> EventCursor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self.stop()
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
                _LOGGER.warning("%s: reorganised, rewound to %d", self.name, ancestor.number)
                return Step(ancestor.number, target, rewound_to=ancestor.number)
            if position.number >= target:
                return Step(position.number, target)
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
            return Step(segment.blocks[-1].number, target, len(segment.logs))

    def catch_up(self) -> Step:
        """Step until nothing is left to do."""
        while not (step := self.step()).caught_up:
            if step.disturbed:
                time.sleep(_BACKOFF_FIRST)
        return step

    def run(
        self, on_step: Callable[[Step], None] = lambda step: None, *, poll_seconds: float = 1.0
    ) -> None:
        """Follow the chain until `stop`, also through absences of the node."""
        backoff = _BACKOFF_FIRST
        while not self._stopped:
            self._wake.clear()
            try:
                step = self.step()
            except RpcUnavailable as error:
                _LOGGER.warning("%s: %s Trying again in %.1f s.", self.name, error, backoff)
                self._wake.wait(backoff)
                backoff = min(2 * backoff, _BACKOFF_LAST)
                continue
            backoff = _BACKOFF_FIRST
            on_step(step)
            if step.caught_up or step.disturbed:
                self._wake.wait(poll_seconds if step.caught_up else _BACKOFF_FIRST)

    def wake(self) -> None:
        """There may be news: do not wait for the next poll. Safe from any thread."""
        self._wake.set()

    def stop(self) -> None:
        """Make `run` return after the step it is in. Safe from any thread."""
        self._stopped = True
        self._wake.set()

    def _begin(self, head: int) -> list[Block]:
        """Take the block before the first as the position; empty while there is none."""
        if self._start - 1 > head:
            return []
        (before,) = self._source.blocks([self._start - 1])
        if before is None:
            return []
        with self._store.transaction():
            self._store.advance([before])
        return [before]

    def _common_ancestor(self, known: list[Block], head: int) -> Block:
        """The newest of our blocks that the node's chain has too.

        A node that has fewer blocks than we have handled, and the same ones, is merely behind:
        then that is our position.
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
