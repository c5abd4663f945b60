"""A daemon's own state: SQLite that is on disk when a write returns.

The state of the chain is in `view`; this is what only the daemon itself knows.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opfl_chain.roles.settings import StateForeign

_OWNER = "CREATE TABLE IF NOT EXISTS owner (name TEXT NOT NULL)"


class State:
    """One connection that threads share, one at a time."""

    def __init__(self, path: Path, owner: str, schema: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Holds secrets and shares: only for the owner. SQLite gives its other files the same mode.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._lock = threading.RLock()
        self._db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA secure_delete = ON")  # overwrite deleted data
        self._db.executescript(f"{_OWNER};{schema}")
        found = self.one("SELECT name FROM owner")
        if found is None:
            self.write("INSERT INTO owner VALUES (?)", owner)
        elif found[0] != owner:
            self._db.close()
            raise StateForeign(
                f"{path} belongs to {found[0]}, not to {owner}:"
                " give this daemon a folder of its own"
            )

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def one(self, statement: str, *values: object) -> Any:
        with self._lock:
            return self._db.execute(statement, values).fetchone()

    def all(self, statement: str, *values: object) -> Sequence[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(statement, values).fetchall()

    def write(self, statement: str, *values: object) -> int:
        """Execute a statement; return the number of changed rows."""
        with self._lock:
            return self._db.execute(statement, values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Apply all writes of this block, or none."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
