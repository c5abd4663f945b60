"""Storage of a client: its secret, its contributions, and what members have of them."""

from __future__ import annotations

import secrets
from typing import Final

import numpy as np

from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.identifiers import Address
from opfl_chain.roles.client.conduct import LocalContribution
from opfl_chain.roles.state import State

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS secret (value BLOB);
CREATE TABLE IF NOT EXISTS contributions (
    opening BLOB PRIMARY KEY, round INTEGER, gradient BLOB, advice BLOB, memory BLOB, proof BLOB,
    refusal TEXT
);
CREATE TABLE IF NOT EXISTS delivered (
    opening BLOB, kind INTEGER, member TEXT, PRIMARY KEY (opening, kind, member)
);
"""


class ClientStore:
    """All but the secret belongs to one opening of a round: no other one ever sees it."""

    def __init__(self, state: State) -> None:
        self._state = state

    def secret(self) -> bytes:
        """Return the secret from which all randomness is derived; the first time, make it."""
        if (row := self._state.one("SELECT value FROM secret")) is None:
            self._state.write("INSERT INTO secret VALUES (?)", secrets.token_bytes(32))
            row = self._state.one("SELECT value FROM secret")
        return bytes(row[0])

    def contribution(self, opening: bytes) -> LocalContribution | None:
        row = self._state.one(
            "SELECT gradient, advice, memory, proof, refusal FROM contributions WHERE opening = ?",
            opening,
        )
        if row is None:
            return None
        gradient, advice, memory, proof, refusal = row
        return LocalContribution(
            np.frombuffer(gradient, "<f4").astype(np.float32),
            None if advice is None else np.frombuffer(advice, "<i8"),
            memory,
            proof,
            refusal,
        )

    def last_memory(self, number: int) -> bytes:
        """Return the memory that the last contribution before a round left."""
        row = self._state.one(
            "SELECT memory FROM contributions WHERE round < ? ORDER BY round DESC, rowid DESC",
            number,
        )
        return row[0] if row else b""

    def keep_contribution(self, opening: bytes, number: int, made: LocalContribution) -> None:
        self._state.write(
            "INSERT OR IGNORE INTO contributions VALUES (?, ?, ?, ?, ?, ?, ?)",
            opening,
            number,
            made.gradient.astype("<f4").tobytes(),
            None if made.advice is None else made.advice.tobytes(),
            made.memory,
            made.proof,
            made.refusal,
        )

    def forget_before(self, number: int) -> None:
        """Delete contributions of earlier rounds, but for the last one, whose memory goes on."""
        with self._state.transaction():
            self._state.write(
                "DELETE FROM contributions WHERE round < ?"
                " AND round < (SELECT max(round) FROM contributions)",
                number,
            )
            self._state.write(
                "DELETE FROM delivered WHERE opening NOT IN (SELECT opening FROM contributions)"
            )

    def keep_delivered(self, opening: bytes, kind: BundleKind, member: Address) -> None:
        """Keep that a member has our bundle."""
        self._state.write(
            "INSERT OR IGNORE INTO delivered VALUES (?, ?, ?)", opening, int(kind), member
        )

    def delivered(self, opening: bytes, kind: BundleKind) -> set[Address]:
        """Return the members that have our bundle."""
        rows = self._state.all(
            "SELECT member FROM delivered WHERE opening = ? AND kind = ?", opening, int(kind)
        )
        return {member for (member,) in rows}
