"""The on-chain state of a job, as far as this daemon has followed it.

Decisions use this state alone, so that daemons at the same block decide alike.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opfl_chain.chain.bindings.types import (
    ClientStatus,
    MemberFault,
    Reason,
    Role,
    Schedule,
    SlashStatus,
)
from opfl_chain.chain.follow.cursor import EventCursor
from opfl_chain.chain.rpc import Rpc
from opfl_chain.protocol.accumulator import BatchCommitment, Commitment, DirectCommitment
from opfl_chain.protocol.errors import VerdictError
from opfl_chain.protocol.identifiers import Address, ClientIndex, RoundId, RoundNumber, round_id_of
from opfl_chain.protocol.randomness import is_audited
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.roles.job import Job
from opfl_chain.roles.view.tables import SCHEMA, TABLES, ChainTables, key_of


@dataclass(frozen=True)
class RoundView:
    """One round. A field is None until its event has happened."""

    id: RoundId
    number: RoundNumber
    model_hash: bytes
    schedule: Schedule
    seed: bytes | None
    verdict_hash: bytes | None
    decided_at: int | None
    over: str | None
    """`finalised` or `void`."""
    over_at: int | None
    aggregate_hash: bytes | None
    next_model_hash: bytes | None

    def closed(self, block: int) -> bool:
        """Return whether commitments are closed, once all blocks up to this one were seen."""
        return block >= self.schedule.commit

    def settled(self, block: int) -> bool:
        """Return whether it is known who is audited."""
        return self.seed is not None or block >= self.schedule.beacon


@dataclass(frozen=True)
class ClientView:
    address: Address
    index: ClientIndex
    root: bytes


@dataclass(frozen=True)
class SlashView:
    round: RoundNumber
    client: Address
    reason: Reason
    captured: int
    executable_at: int
    status: SlashStatus


class ChainView:
    """Queries on tables in a file of their own, which `cursor` fills. Safe in any thread."""

    def __init__(self, job: Job, path: Path) -> None:
        self.job = job
        self._path = path
        self._local = threading.local()

    def cursor(self, rpc: Rpc, start_block: int, confirmations: int) -> EventCursor:
        return EventCursor(
            rpc,
            self._path,
            f"job {self.job.id}",
            self.job.contracts.addresses,
            ChainTables(self.job.id),
            schema=SCHEMA,
            tables=TABLES,
            start_block=start_block,
            confirmations=confirmations,
        )

    # --- rounds

    def round(self, number: int) -> RoundView | None:
        found = self._rounds("WHERE number = ?", number)
        return found[0] if found else None

    def latest_round(self) -> RoundView | None:
        found = self._rounds("ORDER BY number DESC LIMIT 1")
        return found[0] if found else None

    def rounds(self) -> list[RoundView]:
        return self._rounds("ORDER BY number")

    def finalised_rounds(self) -> list[RoundView]:
        return self._rounds("WHERE over = 'finalised' ORDER BY number")

    def rounds_closing_since(self, block: int) -> list[RoundView]:
        """Rounds whose commit phase ends at this block or later."""
        return self._rounds("WHERE commit_deadline >= ? ORDER BY number", block)

    def direct_commitments(self, round_id: RoundId) -> dict[Address, bytes]:
        """Direct commitments by client, in the order of the chain."""
        return dict(
            self._all(
                "SELECT client, commitment FROM commitments WHERE round = ? ORDER BY rowid",
                key_of(round_id),
            )
        )

    def direct_commitment(self, round_id: RoundId, client: Address) -> bytes | None:
        row = self._one(
            "SELECT commitment FROM commitments WHERE round = ? AND client = ?",
            key_of(round_id),
            client,
        )
        return row[0] if row else None

    def count_commitments(self, round_id: RoundId) -> int:
        """Number of direct commitments, plus the size of the batch as the relayer states it."""
        key = key_of(round_id)
        (direct,) = self._one("SELECT count(*) FROM commitments WHERE round = ?", key)
        (relayed,) = self._one("SELECT total(count) FROM batches WHERE round = ?", key)
        return int(direct + relayed)

    def batch(self, round_id: RoundId) -> tuple[bytes, int] | None:
        """Root and number of leaves of the batch."""
        row = self._one("SELECT root, count FROM batches WHERE round = ?", key_of(round_id))
        return (row[0], row[1]) if row else None

    def commitments_in_order(self, round_id: RoundId) -> list[Commitment]:
        """Direct commitments and the batch, in the order of the chain."""
        direct = self.direct_commitments(round_id).items()
        ordered: list[Commitment] = [DirectCommitment(*each) for each in direct]
        query = "SELECT root, count, direct_before FROM batches WHERE round = ?"
        if row := self._one(query, key_of(round_id)):
            root, count, direct_before = row
            ordered.insert(direct_before, BatchCommitment(root, count))
        return ordered

    def published_partials(self, round_id: RoundId) -> set[Address]:
        rows = self._all("SELECT member FROM partials WHERE round = ?", key_of(round_id))
        return {member for (member,) in rows}

    def attestations(self, round_id: RoundId) -> dict[Address, bytes]:
        """The hash of each member's attested verdict."""
        return dict(
            self._all("SELECT member, hash FROM attestations WHERE round = ?", key_of(round_id))
        )

    def decided_verdict(self, round_: RoundView) -> Verdict | None:
        """The decided verdict; None also if two members attested a malformed one."""
        row = self._one(
            "SELECT passes, faults FROM attestations WHERE round = ? AND hash = ? LIMIT 1",
            key_of(round_.id),
            round_.verdict_hash,
        )
        try:
            return Verdict.decode(*row) if row else None
        except VerdictError:
            return None

    def is_audited(self, round_: RoundView, client: Address) -> bool:
        """Return whether a client is audited in a settled round. Without a seed, everyone is."""
        if round_.seed is None:
            return True
        return is_audited(round_.seed, client, self.job.terms.audit_rate)

    @property
    def is_closed(self) -> bool:
        return self._one("SELECT 1 FROM closed") is not None

    @property
    def can_start(self) -> bool:
        """Return whether the first round can open: it takes all members and at least one client."""
        joined = all(self.has_joined(member) for member in self.job.members)
        return joined and self._one("SELECT 1 FROM clients LIMIT 1") is not None

    def is_stillborn(self, block: int) -> bool:
        """Return whether no round will ever open, once all blocks up to this one were seen."""
        return block >= self.job.enrolment_end and not self.can_start

    # --- parties

    def clients(self) -> dict[Address, ClientView]:
        rows = self._all("SELECT address, place, root FROM clients ORDER BY place")
        return {
            address: ClientView(address, ClientIndex(place), root) for address, place, root in rows
        }

    def client(self, address: Address) -> ClientView | None:
        row = self._one("SELECT place, root FROM clients WHERE address = ?", address)
        return ClientView(address, ClientIndex(row[0]), row[1]) if row else None

    def client_status(self, client: Address, block: int | None = None) -> ClientStatus:
        """Status at the end of a block; by default the current one."""
        if self._one("SELECT 1 FROM clients WHERE address = ?", client) is None:
            return ClientStatus.UNKNOWN
        row = self._one(
            "SELECT status FROM statuses WHERE address = ? AND block <= ?"
            " ORDER BY rowid DESC LIMIT 1",
            client,
            2**62 if block is None else block,
        )
        return ClientStatus(row[0]) if row else ClientStatus.ACTIVE

    def announcements(self, member: Address) -> int:
        """Number of times that a member has announced an endpoint."""
        row = self._one("SELECT announcements FROM members WHERE address = ?", member)
        return row[0] if row else 0

    def endpoints(self) -> dict[Address, str]:
        """Endpoints of the members that announced one."""
        rows = self._all("SELECT address, endpoint FROM members WHERE endpoint IS NOT NULL")
        return dict(rows)

    def has_joined(self, member: Address) -> bool:
        row = self._one("SELECT joined FROM members WHERE address = ?", member)
        return bool(row and row[0] is not None)

    def public_key(self, member: Address) -> bytes | None:
        row = self._one("SELECT public_key FROM keys WHERE address = ?", member)
        return row[0] if row else None

    def unbonding(self, owner: Address, role: Role) -> tuple[int, bool] | None:
        """The first block in which the owner can withdraw, and whether it has."""
        row = self._one(
            "SELECT until, left FROM unbonding WHERE address = ? AND role = ?", owner, int(role)
        )
        return (row[0], bool(row[1])) if row else None

    # --- money

    def slashes(self) -> list[SlashView]:
        return self._slashes("")

    def pending_slashes(self) -> list[SlashView]:
        """Slashes that are neither vetoed nor executed."""
        return self._slashes("WHERE status = ?", int(SlashStatus.REQUESTED))

    def slash(self, number: int, client: Address) -> SlashView | None:
        found = self._slashes("WHERE rounds.number = ? AND client = ?", number, client)
        return found[0] if found else None

    def is_penalised(self, round_id: RoundId, member: Address, fault: MemberFault) -> bool:
        return (
            self._one(
                "SELECT 1 FROM penalties WHERE round = ? AND member = ? AND fault = ?",
                key_of(round_id),
                member,
                int(fault),
            )
            is not None
        )

    def close(self) -> None:
        """Close the connection of this thread."""
        if (db := getattr(self._local, "db", None)) is not None:
            db.close()
            del self._local.db

    # --- SQL

    def _rounds(self, rest: str, *values: object) -> list[RoundView]:
        rows = self._all(
            "SELECT number, model_hash, commit_deadline, seed, verdict_hash, decided_at, over,"
            f" over_at, aggregate_hash, next_model_hash FROM rounds {rest}",
            *values,
        )
        return [
            RoundView(
                round_id_of(self.job.id, RoundNumber(number)),
                RoundNumber(number),
                model_hash,
                self.job.schedule(deadline),
                *others,
            )
            for number, model_hash, deadline, *others in rows
        ]

    def _slashes(self, condition: str, *values: object) -> list[SlashView]:
        rows = self._all(
            "SELECT rounds.number, client, reason, captured, executable_at, status"
            f" FROM slashes JOIN rounds ON rounds.id = slashes.round {condition}"
            " ORDER BY rounds.number, client",
            *values,
        )
        return [
            SlashView(
                RoundNumber(n), client, Reason(reason), int(captured), at, SlashStatus(status)
            )
            for n, client, reason, captured, at, status in rows
        ]

    def _all(self, statement: str, *values: object) -> Sequence[tuple[Any, ...]]:
        return self._db.execute(statement, values).fetchall()

    def _one(self, statement: str, *values: object) -> Any:
        return self._db.execute(statement, values).fetchone()

    @property
    def _db(self) -> sqlite3.Connection:
        if not hasattr(self._local, "db"):
            self._local.db = sqlite3.connect(self._path, timeout=30, isolation_level=None)
        connection: sqlite3.Connection = self._local.db
        return connection
