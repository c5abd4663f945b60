"""Storage of a member: its parts of deliveries, and its findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
CREATE TABLE IF NOT EXISTS audit_messages (
    round INTEGER, rank INTEGER, stage TEXT, body BLOB, signature BLOB,
    PRIMARY KEY (round, rank, stage)
);
CREATE TABLE IF NOT EXISTS answer_sheets (round INTEGER PRIMARY KEY, body BLOB, count INTEGER);
CREATE TABLE IF NOT EXISTS answered (
    round INTEGER, leaves BLOB, transcript BLOB, PRIMARY KEY (round, leaves)
);
CREATE TABLE IF NOT EXISTS told (
    round INTEGER, member TEXT, stage TEXT, PRIMARY KEY (round, member, stage)
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

    # --- exchanges on proved steps

    def keep_report(
        self, number: int, rank: int, body: bytes, signature: bytes, sheet: bytes, answers: int
    ) -> None:
        """Store our report together with the answers that it commits to."""
        with self._state.transaction():
            self._state.write(
                "INSERT OR IGNORE INTO answer_sheets VALUES (?, ?, ?)", number, sheet, answers
            )
            self.keep_audit_message(number, rank, "report", body, signature)

    def keep_answers(
        self,
        number: int,
        rank: int,
        body: bytes,
        signature: bytes,
        challenges: Mapping[bytes, bytes],
    ) -> None:
        """Store our answers, and for each delivery, by its leaf hashes, the challenge they are to.

        Challenges are not forgotten: of answers to two of them the masks could be computed.
        """
        statement = "INSERT OR IGNORE INTO answered VALUES (?, ?, ?)"
        with self._state.transaction():
            for leaves, transcript in challenges.items():
                self._state.write(statement, number, leaves, transcript)
            self.keep_audit_message(number, rank, "answers", body, signature)

    def challenge(self, number: int, leaves: bytes) -> bytes | None:
        """Return the transcript on which we have answered for a delivery of a round."""
        row = self._state.one(
            "SELECT transcript FROM answered WHERE round = ? AND leaves = ?", number, leaves
        )
        return row[0] if row else None

    def forget_exchange(self, number: int) -> None:
        """Forget all messages about a round as it was before a reorganisation."""
        with self._state.transaction():
            for table in ("audit_messages", "answer_sheets", "told"):
                self._state.write(f"DELETE FROM {table} WHERE round = ?", number)

    def forget_messages_of(self, number: int, rank: int) -> None:
        """Forget what one member said about a round."""
        self._state.write("DELETE FROM audit_messages WHERE round = ? AND rank = ?", number, rank)

    def answer_sheet(self, number: int) -> tuple[bytes, int]:
        """Return all answers that our report commits to, and their number."""
        body, count = self._state.one(
            "SELECT body, count FROM answer_sheets WHERE round = ?", number
        )
        return bytes(body), int(count)

    def keep_audit_message(
        self, number: int, rank: int, stage: str, body: bytes, signature: bytes
    ) -> bool:
        """Store a message durably; return False if the member has said something else before."""
        statement = "INSERT OR IGNORE INTO audit_messages VALUES (?, ?, ?, ?, ?)"
        if self._state.write(statement, number, rank, stage, body, signature) == 1:
            return True
        known = self.audit_message(number, rank, stage)
        return known is not None and known[0] == body

    def audit_message(self, number: int, rank: int, stage: str) -> tuple[bytes, bytes] | None:
        """Return a member's message and its signature."""
        row = self._state.one(
            "SELECT body, signature FROM audit_messages WHERE round = ? AND rank = ? AND stage = ?",
            number,
            rank,
            stage,
        )
        return (row[0], row[1]) if row else None

    def audit_messages(self, number: int) -> Sequence[tuple[int, str, bytes, bytes]]:
        """Return rank, stage, body and signature of all messages of a round."""
        return self._state.all(
            "SELECT rank, stage, body, signature FROM audit_messages WHERE round = ?"
            " ORDER BY rank, stage DESC",
            number,
        )

    def keep_told(self, number: int, member: Address, stage: str) -> None:
        self._state.write("INSERT OR IGNORE INTO told VALUES (?, ?, ?)", number, member, stage)

    def has_told(self, number: int, member: Address, stage: str) -> bool:
        """Return whether a peer has confirmed that it has our message."""
        row = self._state.one(
            "SELECT 1 FROM told WHERE round = ? AND member = ? AND stage = ?", number, member, stage
        )
        return row is not None

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
