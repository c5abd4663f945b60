"""Storage of a member: its parts of deliveries, and its findings."""

from __future__ import annotations

from typing import Final

from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.roles.state import State

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS deliveries (
    round INTEGER, client TEXT, body BLOB, PRIMARY KEY (round, client)
);
CREATE TABLE IF NOT EXISTS partials (round INTEGER PRIMARY KEY, message BLOB, signature BLOB);
CREATE TABLE IF NOT EXISTS judgements (round INTEGER PRIMARY KEY, passes BLOB, faults BLOB);
CREATE TABLE IF NOT EXISTS results (
    round INTEGER PRIMARY KEY, verdict BLOB, aggregate BLOB, model BLOB
);
CREATE TABLE IF NOT EXISTS summed (round INTEGER PRIMARY KEY, verdict BLOB);
CREATE TABLE IF NOT EXISTS second_replays (
    round INTEGER, client TEXT, passed INTEGER, PRIMARY KEY (round, client)
);
"""


class MemberStore:
    """Findings are written once and never replaced: a member does not contradict itself."""

    def __init__(self, state: State) -> None:
        self._state = state

    # --- deliveries

    def keep_delivery(self, number: int, client: Address, body: bytes) -> bool:
        """Store a delivery durably; return False if the client has another one already."""
        statement = "INSERT OR IGNORE INTO deliveries VALUES (?, ?, ?)"
        new = self._state.write(statement, number, client, body) == 1
        return new or self.delivery(number, client) == body

    def replace_delivery(self, number: int, client: Address, old: bytes, new: bytes) -> bool:
        """Replace a delivery durably; return False if the old one is gone."""
        statement = "UPDATE deliveries SET body = ? WHERE round = ? AND client = ? AND body = ?"
        return self._state.write(statement, new, number, client, old) == 1

    def delivery(self, number: int, client: Address) -> bytes | None:
        row = self._state.one(
            "SELECT body FROM deliveries WHERE round = ? AND client = ?", number, client
        )
        return row[0] if row else None

    def delivered(self, number: int) -> set[Address]:
        rows = self._state.all("SELECT client FROM deliveries WHERE round = ?", number)
        return {client for (client,) in rows}

    def count_deliveries(self, number: int) -> int:
        row = self._state.one("SELECT count(*) FROM deliveries WHERE round = ?", number)
        return int(row[0])

    def rounds_with_deliveries(self) -> list[int]:
        return [n for (n,) in self._state.all("SELECT DISTINCT round FROM deliveries")]

    def forget_deliveries(self, number: int) -> None:
        self._state.write("DELETE FROM deliveries WHERE round = ?", number)

    # --- findings

    def keep_partial(self, number: int, message: bytes, signature: bytes) -> None:
        """Store the newest signature: a reorganisation may change the signed message."""
        self._state.write(
            "INSERT OR REPLACE INTO partials VALUES (?, ?, ?)", number, message, signature
        )

    def partial(self, number: int) -> tuple[bytes, bytes] | None:
        """The signed message, and the signature."""
        row = self._state.one("SELECT message, signature FROM partials WHERE round = ?", number)
        return (row[0], row[1]) if row else None

    def keep_judgement(self, number: int, verdict: Verdict) -> None:
        self._state.write(
            "INSERT OR IGNORE INTO judgements VALUES (?, ?, ?)",
            number,
            verdict.passes_bytes,
            verdict.faults_bytes,
        )

    def judgement(self, number: int) -> Verdict | None:
        row = self._state.one("SELECT passes, faults FROM judgements WHERE round = ?", number)
        return Verdict.decode(*row) if row else None

    def may_sum(self, number: int, verdict: bytes) -> bool:
        """Return whether this is the one verdict of the round whose sum we reveal; the first is.

        Two sums of one round that differ by a client would reveal its gradient.
        """
        self._state.write("INSERT OR IGNORE INTO summed VALUES (?, ?)", number, verdict)
        row = self._state.one("SELECT verdict FROM summed WHERE round = ?", number)
        return bool(row[0] == verdict)

    def keep_result(self, number: int, verdict: bytes, aggregate: bytes, model: bytes) -> None:
        self._state.write(
            "INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?)", number, verdict, aggregate, model
        )

    def result(self, number: int) -> tuple[bytes, bytes, bytes] | None:
        """Hashes of the verdict, the aggregate and the next model."""
        row = self._state.one(
            "SELECT verdict, aggregate, model FROM results WHERE round = ?", number
        )
        return (row[0], row[1], row[2]) if row else None

    def keep_second_replay(self, number: int, client: Address, *, passed: bool) -> None:
        self._state.write(
            "INSERT OR IGNORE INTO second_replays VALUES (?, ?, ?)", number, client, passed
        )

    def second_replay(self, number: int, client: Address) -> bool | None:
        row = self._state.one(
            "SELECT passed FROM second_replays WHERE round = ? AND client = ?", number, client
        )
        return bool(row[0]) if row else None
