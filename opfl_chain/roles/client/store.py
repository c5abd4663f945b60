"""Storage of a client: its secret, and its last contributions."""

from __future__ import annotations

import secrets
from typing import Final

import numpy as np

from opfl_chain.roles.client.conduct import LocalContribution
from opfl_chain.roles.state import State

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS secret (value BLOB);
CREATE TABLE IF NOT EXISTS contributions (
    round INTEGER PRIMARY KEY, gradient BLOB, advice BLOB, memory BLOB
);
CREATE TABLE IF NOT EXISTS proofs (round INTEGER PRIMARY KEY, body BLOB, refusal TEXT);
"""


class ClientStore:
    def __init__(self, state: State) -> None:
        self._state = state

    def secret(self) -> bytes:
        """Return the secret from which all randomness is derived; the first time, make it."""
        if (row := self._state.one("SELECT value FROM secret")) is None:
            self._state.write("INSERT INTO secret VALUES (?)", secrets.token_bytes(32))
            row = self._state.one("SELECT value FROM secret")
        return bytes(row[0])

    def contribution(self, number: int) -> LocalContribution | None:
        row = self._state.one(
            "SELECT gradient, advice, memory FROM contributions WHERE round = ?", number
        )
        if row is None:
            return None
        gradient, advice, memory = row
        proof = self._state.one("SELECT body, refusal FROM proofs WHERE round = ?", number)
        return LocalContribution(
            np.frombuffer(gradient, "<f4").astype(np.float32),
            None if advice is None else np.frombuffer(advice, "<i8"),
            memory,
            *(proof or ()),
        )

    def last_memory(self) -> bytes:
        """Return the memory that the last contribution left."""
        row = self._state.one("SELECT memory FROM contributions ORDER BY round DESC LIMIT 1")
        return row[0] if row else b""

    def keep_contribution(self, number: int, made: LocalContribution) -> None:
        """Store a contribution and its proof; only those of the last two rounds are kept."""
        with self._state.transaction():
            if made.proof is not None or made.refusal:
                self._state.write(
                    "INSERT OR REPLACE INTO proofs VALUES (?, ?, ?)",
                    number,
                    made.proof,
                    made.refusal,
                )
            self._state.write(
                "INSERT OR IGNORE INTO contributions VALUES (?, ?, ?, ?)",
                number,
                made.gradient.astype("<f4").tobytes(),
                None if made.advice is None else made.advice.tobytes(),
                made.memory,
            )
            self._state.write("DELETE FROM contributions WHERE round < ?", number - 1)
            self._state.write("DELETE FROM proofs WHERE round < ?", number - 1)
