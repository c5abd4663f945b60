"""A sender's intents and signed attempts in SQLite, and the fees they offer (EIP-1559)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from eth_utils.crypto import keccak

from opfl_chain.chain.contracts.contract import Call
from opfl_chain.chain.errors import ChainMismatch, SenderLocked

GWEI = 10**9
_SCHEMA = """
CREATE TABLE IF NOT EXISTS owner (genesis TEXT NOT NULL, address TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS intents (
    key TEXT PRIMARY KEY,
    nonce INTEGER NOT NULL UNIQUE,
    fingerprint BLOB NOT NULL,
    description TEXT NOT NULL,
    state TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS attempts (
    hash TEXT PRIMARY KEY,
    nonce INTEGER NOT NULL REFERENCES intents (nonce),
    raw BLOB NOT NULL,
    max_fee INTEGER NOT NULL,
    priority_fee INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS attempts_of ON attempts (nonce);
"""


@dataclass(frozen=True)
class Fees:
    """Maximum and priority fee, in wei per gas."""

    maximum: int
    priority: int


@dataclass(frozen=True)
class FeePolicy:
    base_multiple: int = 2
    """Headroom for the base fee, which at most doubles in six full blocks."""
    bump_percent: int = 25
    """Fee increase of a replacement; nodes require at least 10."""
    limit: int = 500 * GWEI
    """The most that is ever offered per gas."""

    def first(self, base_fee: int, suggested_priority: int) -> Fees:
        return Fees(self.base_multiple * base_fee + suggested_priority, suggested_priority)

    def bumped(self, previous: Fees, current: Fees) -> Fees:
        """Return fees high enough to replace `previous`, and at least `current`."""
        return Fees(
            max(self._raise(previous.maximum), current.maximum),
            max(self._raise(previous.priority), current.priority),
        )

    def _raise(self, fee: int) -> int:
        return fee + fee * self.bump_percent // 100 + 1


class State(Enum):
    PENDING = "pending"
    MINED = "mined"
    DISPLACED = "displaced"
    """A foreign transaction used its nonce: it was not and will not be executed."""


@dataclass(frozen=True)
class Intent:
    key: str
    nonce: int
    fingerprint: bytes
    description: str
    state: State = State.PENDING


@dataclass(frozen=True)
class Attempt:
    """One signed transaction for an intent. A later one pays more; only one can be mined."""

    hash: str
    nonce: int
    raw: bytes
    fees: Fees


def fingerprint(call: Call) -> bytes:
    to = call.to.lower() if call.to else "creation"
    return keccak(f"{to}|{call.value}|".encode() + call.data)


class SenderStore:
    def __init__(self, path: Path, genesis: str, address: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("BEGIN EXCLUSIVE")
            for statement in _SCHEMA.split(";"):
                self._db.execute(statement)
            owner = self._db.execute("SELECT genesis, address FROM owner").fetchone()
            if owner is None:
                self._db.execute("INSERT INTO owner VALUES (?, ?)", (genesis, address))
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            self._db.close()
            if "locked" in str(error):
                raise SenderLocked(address, path) from error
            raise
        if owner and owner != (genesis, address):
            self._db.close()
            raise ChainMismatch(
                f"{path} stores transactions of another chain or account (genesis, address)",
                owner,
                (genesis, address),
                "Use a fresh folder for a fresh chain.",
            )

    def close(self) -> None:
        self._db.close()

    def add(self, signed: Sequence[tuple[Intent, Attempt]]) -> None:
        """Store all or none; they are on disk when this returns."""
        with self._transaction():
            self._db.executemany(
                "INSERT INTO intents VALUES (?, ?, ?, ?, ?)",
                [(i.key, i.nonce, i.fingerprint, i.description, i.state.value) for i, _ in signed],
            )
            self._insert_attempts(attempt for _, attempt in signed)

    def add_attempt(self, attempt: Attempt) -> None:
        with self._transaction():
            self._insert_attempts([attempt])

    def set_state(self, keys: Sequence[str], state: State) -> None:
        with self._transaction():
            self._db.executemany(
                "UPDATE intents SET state = ? WHERE key = ?", [(state.value, key) for key in keys]
            )

    def find(self, key: str) -> Intent | None:
        found = self._select("WHERE key = ?", key)
        return found[0] if found else None

    def pending(self) -> list[Intent]:
        return self._select("WHERE state = ? ORDER BY nonce", State.PENDING.value)

    def from_nonce(self, nonce: int) -> list[Intent]:
        """Return the intents that a chain with this next nonce cannot have executed."""
        return self._select(
            "WHERE nonce >= ? AND state != ? ORDER BY nonce", nonce, State.DISPLACED.value
        )

    def next_nonce(self) -> int:
        (highest,) = self._db.execute("SELECT max(nonce) FROM intents").fetchone()
        return 0 if highest is None else highest + 1

    def attempts(self, nonce: int) -> list[Attempt]:
        """Return the attempts for a nonce, oldest first."""
        rows = self._db.execute(
            "SELECT hash, nonce, raw, max_fee, priority_fee FROM attempts WHERE nonce = ?"
            " ORDER BY rowid",
            (nonce,),
        )
        return [Attempt(h, n, raw, Fees(maximum, tip)) for h, n, raw, maximum, tip in rows]

    def _transaction(self) -> sqlite3.Connection:
        self._db.execute("BEGIN")
        return self._db  # as a context manager it commits, or rolls back on an error

    def _insert_attempts(self, attempts: Iterable[Attempt]) -> None:
        self._db.executemany(
            "INSERT INTO attempts VALUES (?, ?, ?, ?, ?)",
            [(a.hash, a.nonce, a.raw, a.fees.maximum, a.fees.priority) for a in attempts],
        )

    def _select(self, where: str, *values: object) -> list[Intent]:
        rows = self._db.execute(
            f"SELECT key, nonce, fingerprint, description, state FROM intents {where}", values
        )
        return [Intent(k, n, print_, text, State(state)) for k, n, print_, text, state in rows]
