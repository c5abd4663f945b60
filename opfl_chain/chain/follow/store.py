"""A cursor's position, in the same SQLite file as its handlers' tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from opfl_chain.chain.errors import ChainMismatch
from opfl_chain.chain.follow.journal import Journal

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS cursors (name TEXT PRIMARY KEY, genesis TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS cursor_blocks (
        cursor TEXT NOT NULL,
        number INTEGER NOT NULL,
        hash TEXT NOT NULL,
        PRIMARY KEY (cursor, number)
    )""",
)


@dataclass(frozen=True)
class Block:
    number: int
    hash: str


class CursorStore:
    """The last `window` handled blocks, each of which can be undone."""

    def __init__(
        self, path: Path, name: str, genesis: str, schema: str, tables: tuple[str, ...], window: int
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.name = name
        self._window = window
        self.db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            self.db.execute("PRAGMA journal_mode = WAL")
            # Losing the last commits in a power cut is harmless: position and effects go together.
            self.db.execute("PRAGMA synchronous = NORMAL")
            for statement in _SCHEMA:
                self.db.execute(statement)
            self.db.executescript(schema)
            self.journal = Journal(self.db, name, tables)
            self._claim(path, genesis)
        except BaseException:
            self.db.close()
            raise

    def close(self) -> None:
        self.db.close()

    def blocks(self) -> list[Block]:
        """Return the blocks, newest first; the first is the position. Empty before the start."""
        rows = self.db.execute(
            "SELECT number, hash FROM cursor_blocks WHERE cursor = ? ORDER BY number DESC",
            (self.name,),
        )
        return [Block(number, hash_) for number, hash_ in rows]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def advance(self, blocks: Sequence[Block]) -> None:
        """Add handled blocks. Call it within a transaction."""
        self.db.executemany(
            "INSERT INTO cursor_blocks VALUES (?, ?, ?)",
            [(self.name, block.number, block.hash) for block in blocks],
        )
        oldest = blocks[-1].number - self._window
        self.db.execute(
            "DELETE FROM cursor_blocks WHERE cursor = ? AND number < ?", (self.name, oldest)
        )
        self.journal.forget(oldest)

    def rewind(self, ancestor: Block) -> None:
        """Undo all blocks after `ancestor`. Call it within a transaction."""
        self.journal.rewind(ancestor.number)
        self.db.execute(
            "DELETE FROM cursor_blocks WHERE cursor = ? AND number > ?",
            (self.name, ancestor.number),
        )

    def _claim(self, path: Path, genesis: str) -> None:
        self.db.execute("INSERT OR IGNORE INTO cursors VALUES (?, ?)", (self.name, genesis))
        (stored,) = self.db.execute(
            "SELECT genesis FROM cursors WHERE name = ?", (self.name,)
        ).fetchone()
        if stored != genesis:
            raise ChainMismatch(
                f"{path} follows another chain (genesis block)",
                stored,
                genesis,
                "Use a fresh database for a fresh chain.",
            )
