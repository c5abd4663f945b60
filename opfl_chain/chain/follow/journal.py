"""Undo log for SQLite tables: all changes by handlers can be undone, block by block.

Triggers record the inverse of every change, together with the block that caused it. Rewinding
executes these inverses, newest first. So handlers need no code for reorganisations, which could be
wrong. (SQLite's documentation calls this an automatic undo log.)
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opfl_chain.chain.errors import HandlerOverreached

_SCHEMA = """
CREATE TABLE IF NOT EXISTS cursor_undo (
    id INTEGER PRIMARY KEY,
    cursor TEXT NOT NULL,
    block INTEGER NOT NULL,
    statement TEXT NOT NULL
)
"""
_WRITES = {
    sqlite3.SQLITE_INSERT: "insert into",
    sqlite3.SQLITE_UPDATE: "update",
    sqlite3.SQLITE_DELETE: "delete from",
}


class Journal:
    """The undo log of one connection; changes through other connections are not recorded."""

    def __init__(self, db: sqlite3.Connection, cursor: str, tables: tuple[str, ...]) -> None:
        self._db = db
        self._cursor = cursor
        self._tables = tables
        self._overreach = ""
        db.execute(_SCHEMA)
        db.execute("PRAGMA recursive_triggers = ON")  # else INSERT OR REPLACE deletes unseen
        db.execute("CREATE TEMP TABLE journal_now (cursor TEXT, block INTEGER)")
        db.execute("INSERT INTO journal_now VALUES (?, NULL)", (cursor,))
        for table in tables:
            self._watch(table)

    @contextmanager
    def recording(self) -> Iterator[Callable[[int], None]]:
        """Record changes while handlers run. Yields a function that sets the current block."""
        self._db.set_authorizer(self._authorise)
        self._overreach = ""
        try:
            yield self._set_block
        finally:
            # Not None, which needs Python 3.11.
            self._db.set_authorizer(lambda *_: sqlite3.SQLITE_OK)
            self._set_block(None)
            if self._overreach:  # also if the handler caught the error
                raise HandlerOverreached(self._cursor, self._overreach, self._tables)

    def rewind(self, block: int) -> None:
        """Undo all changes by blocks after this one."""
        after = (self._cursor, block)
        undo = self._db.execute(
            "SELECT statement FROM cursor_undo WHERE cursor = ? AND block > ? ORDER BY id DESC",
            after,
        ).fetchall()
        for (statement,) in undo:
            self._db.execute(statement)
        self._db.execute("DELETE FROM cursor_undo WHERE cursor = ? AND block > ?", after)

    def forget(self, block: int) -> None:
        """Drop the undo data of this block and earlier ones."""
        self._db.execute(
            "DELETE FROM cursor_undo WHERE cursor = ? AND block <= ?", (self._cursor, block)
        )

    def _set_block(self, block: int | None) -> None:
        self._db.execute("UPDATE journal_now SET block = ?", (block,))

    def _authorise(self, action: int, table: str | None, *rest: str | None) -> int:
        in_trigger = rest[-1] is not None
        if action in _WRITES and table not in (*self._tables, "journal_now") and not in_trigger:
            self._overreach = f"{_WRITES[action]} {table}"
        elif action in (sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT):
            self._overreach = f"{table} the transaction".lower()
        else:
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    def _watch(self, table: str) -> None:
        columns = [row[1] for row in self._db.execute(f"PRAGMA table_info({_name(table)})")]
        if not columns:
            raise HandlerOverreached(
                self._cursor, f"use table {table}, which `schema` does not create", self._tables
            )
        names = ", ".join(_name(column) for column in columns)
        values = " || ', ' || ".join(_old(column) for column in columns)
        assignments = " || ', ' || ".join(
            f"{_literal(_name(column) + ' = ')} || {_old(column)}" for column in columns
        )
        inverses = {
            "INSERT": f"{_literal(f'DELETE FROM {_name(table)} WHERE rowid = ')} || new.rowid",
            "DELETE": f"{_literal(f'INSERT INTO {_name(table)} (rowid, {names}) VALUES (')}"
            f" || old.rowid || ', ' || {values} || ')'",
            "UPDATE": f"{_literal(f'UPDATE {_name(table)} SET ')} || {assignments}"
            " || ' WHERE rowid = ' || new.rowid",
        }
        for event, inverse in inverses.items():
            self._db.execute(
                f"CREATE TEMP TRIGGER {_name(f'journal_{table}_{event}')}"
                f" AFTER {event} ON {_name(table)}"
                " WHEN (SELECT block FROM journal_now) IS NOT NULL BEGIN"
                " INSERT INTO cursor_undo (cursor, block, statement)"
                f" SELECT cursor, block, {inverse} FROM journal_now; END"
            )


def _old(column: str) -> str:
    """Return an SQL expression that yields a column's old value as a literal."""
    value = f"old.{_name(column)}"
    # quote() writes infinity as Inf, which SQLite cannot parse.
    return f"CASE {value} WHEN 9e999 THEN '9e999' WHEN -9e999 THEN '-9e999' ELSE quote({value}) END"


def _name(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
