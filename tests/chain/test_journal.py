from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opfl_chain.chain.errors import HandlerOverreached
from opfl_chain.chain.follow.journal import Journal

SCHEMA = """
CREATE TABLE items (key TEXT PRIMARY KEY, "odd ""name" BLOB, amount REAL);
CREATE TABLE children (
    id INTEGER PRIMARY KEY,
    parent TEXT REFERENCES items (key) ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE TABLE private (value INTEGER);
"""
TABLES = ("items", "children")


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    yield from connection()


def connection() -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("PRAGMA foreign_keys = ON")
    db.executescript(SCHEMA)
    yield db
    db.close()


def content(db: sqlite3.Connection) -> list[Any]:
    return [db.execute(f"SELECT rowid, * FROM {table} ORDER BY 1").fetchall() for table in TABLES]


KEYS = st.sampled_from(["a", "b", "it's", '"', "\N{SNOWMAN}"])
VALUES = st.one_of(
    st.none(), st.binary(max_size=4), st.text(max_size=4), st.integers(-(2**63), 2**63 - 1)
)
REALS = st.one_of(st.none(), st.floats(allow_nan=False))
STATEMENTS = st.one_of(
    st.tuples(st.just("INSERT OR REPLACE INTO items VALUES (?, ?, ?)"), KEYS, VALUES, REALS),
    st.tuples(st.just("INSERT OR IGNORE INTO items VALUES (?, ?, ?)"), KEYS, VALUES, REALS),
    st.tuples(st.just('UPDATE items SET "odd ""name" = ? WHERE key = ?'), VALUES, KEYS),
    st.tuples(st.just("UPDATE OR IGNORE items SET key = ? WHERE key = ?"), KEYS, KEYS),
    st.tuples(st.just("DELETE FROM items WHERE key = ?"), KEYS),
    st.tuples(st.just("DELETE FROM items")),
    st.tuples(st.just("INSERT INTO children (parent) SELECT key FROM items WHERE key = ?"), KEYS),
    st.tuples(st.just("UPDATE OR IGNORE children SET id = id + ?"), st.integers(-3, 3)),
)
BLOCKS = st.lists(st.lists(STATEMENTS, max_size=6), min_size=1, max_size=5)


@given(blocks=BLOCKS, data=st.data())
def test_rewinding_restores_what_was_there(blocks: list[list[Any]], data: Any) -> None:
    for db in connection():
        journal = Journal(db, "cursor", TABLES)
        after = [content(db)]
        for number, statements in enumerate(blocks, 1):
            with journal.recording() as set_block:
                set_block(number)
                for statement, *values in statements:
                    db.execute(statement, values)
            after.append(content(db))
        while (target := data.draw(st.integers(0, len(after) - 1))) < len(after) - 1:
            journal.rewind(target)
            assert content(db) == after[target]
            del after[target + 1 :]


def test_forgotten_changes_are_not_undone(db: sqlite3.Connection) -> None:
    journal = Journal(db, "cursor", TABLES)
    for number in (1, 2):
        with journal.recording() as set_block:
            set_block(number)
            db.execute("INSERT INTO items VALUES (?, NULL, NULL)", (str(number),))
    journal.forget(1)
    journal.rewind(0)
    assert [row[1] for row in content(db)[0]] == ["1"]


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("INSERT INTO private VALUES (1)", "insert into private"),
        ("UPDATE private SET value = 1", "update private"),
        ("DELETE FROM private", "delete from private"),
        ("CREATE TABLE more (value)", "insert into sqlite_master"),
        ("COMMIT", "commit the transaction"),
        ("DELETE FROM cursor_undo", "delete from cursor_undo"),
    ],
)
def test_handlers_reach_only_the_tables_that_can_be_rewound(
    db: sqlite3.Connection, statement: str, complaint: str
) -> None:
    journal = Journal(db, "cursor", TABLES)
    with pytest.raises(HandlerOverreached, match=complaint), journal.recording() as set_block:
        set_block(1)
        db.execute(statement)
    # Also raised if the handler swallows the error.
    with pytest.raises(HandlerOverreached), journal.recording() as set_block:
        set_block(1)
        with pytest.raises(sqlite3.DatabaseError):
            db.execute(statement)
    db.execute("INSERT INTO private VALUES (1)")  # outside a handler everything is allowed


def test_a_table_that_does_not_exist_is_reported(db: sqlite3.Connection) -> None:
    with pytest.raises(HandlerOverreached, match="nowhere"):
        Journal(db, "cursor", ("nowhere",))
