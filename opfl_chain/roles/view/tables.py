"""Tables of a job's on-chain state, written from events and rewound on reorganisations.

The handler only writes. Queries are in `view`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from opfl_chain.chain.bindings import events
from opfl_chain.chain.bindings.types import ChargeStatus, Outcome
from opfl_chain.chain.contracts.contract import Event, Log, decode_event
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import JobId, RoundId, job_and_number

SCHEMA = """
CREATE TABLE IF NOT EXISTS members (
    address TEXT PRIMARY KEY, joined INTEGER, sealing_key BLOB, endpoint TEXT,
    announcements INTEGER DEFAULT 0
);
CREATE TABLE IF NOT EXISTS keys (address TEXT PRIMARY KEY, public_key BLOB);
CREATE TABLE IF NOT EXISTS seats (
    epoch INTEGER PRIMARY KEY, seat INTEGER, address TEXT, block INTEGER
);
CREATE TABLE IF NOT EXISTS clients (address TEXT PRIMARY KEY, place INTEGER, root BLOB);
CREATE TABLE IF NOT EXISTS statuses (address TEXT, block INTEGER, status INTEGER);
CREATE TABLE IF NOT EXISTS rounds (
    id TEXT PRIMARY KEY, number INTEGER, model_hash BLOB, opening BLOB, epoch INTEGER,
    opened_at INTEGER, root BLOB, count INTEGER, pairs BLOB, rolled_at INTEGER, seed BLOB,
    verdict_hash BLOB, decided_at INTEGER, over TEXT, over_at INTEGER, aggregate_hash BLOB,
    next_model_hash BLOB
);
CREATE TABLE IF NOT EXISTS partials (round TEXT, member TEXT, PRIMARY KEY (round, member));
CREATE TABLE IF NOT EXISTS attestations (
    round TEXT, member TEXT, passes BLOB, hash BLOB, PRIMARY KEY (round, member)
);
CREATE TABLE IF NOT EXISTS charges (
    round TEXT, client TEXT, held TEXT, held_at INTEGER, status INTEGER, outcome INTEGER,
    decided_at INTEGER, PRIMARY KEY (round, client)
);
CREATE TABLE IF NOT EXISTS penalties (round TEXT, member TEXT, fault INTEGER, amount TEXT);
CREATE TABLE IF NOT EXISTS claims (round TEXT, account TEXT, amount TEXT);
CREATE TABLE IF NOT EXISTS refunds (amount TEXT, block INTEGER);
CREATE TABLE IF NOT EXISTS unbonding (address TEXT, role INTEGER, until INTEGER, left INTEGER);
CREATE TABLE IF NOT EXISTS closed (rounds INTEGER, block INTEGER);
"""
TABLES = (
    "members", "keys", "seats", "clients", "statuses", "rounds", "partials", "attestations",
    "charges", "penalties", "claims", "refunds", "unbonding", "closed",
)  # fmt: skip


class ChainTables:
    """Event handler of a cursor, for one job."""

    def __init__(self, job: JobId) -> None:
        self._job = job

    def __call__(self, db: sqlite3.Connection, log: Log) -> None:
        event = decode_event(log)
        handler = _HANDLERS.get(type(event))
        if handler is not None and self._concerns(event):
            handler(db, event, log.block_number)

    def _concerns(self, event: Event) -> bool:
        job, round_id = getattr(event, "job", None), getattr(event, "round", None)
        if round_id is not None:
            job = job_and_number(round_id)[0]
        return job is None or job == self._job


def key_of(round_id: RoundId) -> str:
    """Return the table key of a round: its id does not fit into an SQLite integer."""
    return f"{round_id:024x}"


def _member_joined(db: sqlite3.Connection, event: events.MemberJoined, block: int) -> None:
    _put_member(db, event.member, joined=block, sealing_key=event.sealing_key)


def _endpoint(db: sqlite3.Connection, event: events.EndpointAnnounced, block: int) -> None:
    del block
    _put_member(db, event.member, endpoint=event.url)
    db.execute(
        "UPDATE members SET announcements = announcements + 1 WHERE address = ?", (event.member,)
    )


def _put_member(db: sqlite3.Connection, address: str, **columns: Any) -> None:
    if db.execute("SELECT 1 FROM members WHERE address = ?", (address,)).fetchone() is None:
        db.execute("INSERT INTO members (address) VALUES (?)", (address,))
    changes = ", ".join(f"{column} = ?" for column in columns)
    db.execute(f"UPDATE members SET {changes} WHERE address = ?", (*columns.values(), address))


def _seat(db: sqlite3.Connection, event: events.SeatChanged, block: int) -> None:
    db.execute("INSERT INTO seats VALUES (?, ?, ?, ?)", (event.epoch, event.seat, event.to, block))


def _key(db: sqlite3.Connection, event: events.KeyRegistered, block: int) -> None:
    del block
    db.execute("INSERT INTO keys VALUES (?, ?)", (event.member, event.public_key))


def _enrolled(db: sqlite3.Connection, event: events.ClientEnrolled, block: int) -> None:
    del block
    db.execute("INSERT INTO clients VALUES (?, ?, ?)", (event.client, event.index, event.root))


def _root(db: sqlite3.Connection, event: events.DatasetRootReplaced, block: int) -> None:
    del block
    db.execute("UPDATE clients SET root = ? WHERE address = ?", (event.root, event.client))


def _status(db: sqlite3.Connection, event: events.ClientStatusChanged, block: int) -> None:
    db.execute("INSERT INTO statuses VALUES (?, ?, ?)", (event.client, block, int(event.status)))


def _opened(db: sqlite3.Connection, event: events.RoundOpened, block: int) -> None:
    db.execute(
        "INSERT INTO rounds (id, number, model_hash, opening, epoch, opened_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (
            key_of(event.round),
            job_and_number(event.round)[1],
            event.model_hash,
            event.opening,
            event.epoch,
            block,
        ),
    )


def _rolled(db: sqlite3.Connection, event: events.RollCommitted, block: int) -> None:
    _update_round(
        db, event.round, root=event.root, count=event.count, pairs=event.pairs, rolled_at=block
    )


def _partial(db: sqlite3.Connection, event: events.PartialPublished, block: int) -> None:
    del block
    db.execute("INSERT INTO partials VALUES (?, ?)", (key_of(event.round), event.member))


def _beacon(db: sqlite3.Connection, event: events.BeaconPublished, block: int) -> None:
    del block
    _update_round(db, event.round, seed=event.seed)


def _attested(db: sqlite3.Connection, event: events.VerdictAttested, block: int) -> None:
    del block
    db.execute(
        "INSERT INTO attestations VALUES (?, ?, ?, ?)",
        (key_of(event.round), event.member, event.passes, keccak256(event.passes)),
    )


def _decided(db: sqlite3.Connection, event: events.VerdictDecided, block: int) -> None:
    _update_round(db, event.round, verdict_hash=event.verdict_hash, decided_at=block)


def _finalised(db: sqlite3.Connection, event: events.RoundFinalised, block: int) -> None:
    _update_round(
        db,
        event.round,
        over="finalised",
        over_at=block,
        aggregate_hash=event.aggregate_hash,
        next_model_hash=event.model_hash,
    )


def _voided(db: sqlite3.Connection, event: events.RoundVoided, block: int) -> None:
    _update_round(db, event.round, over="void", over_at=block)


def _update_round(db: sqlite3.Connection, round_id: RoundId, **columns: Any) -> None:
    changes = ", ".join(f"{column} = ?" for column in columns)
    db.execute(f"UPDATE rounds SET {changes} WHERE id = ?", (*columns.values(), key_of(round_id)))


def _held(db: sqlite3.Connection, event: events.AuditHeld, block: int) -> None:
    db.execute(
        "INSERT INTO charges (round, client, held, held_at, status) VALUES (?, ?, ?, ?, ?)",
        (key_of(event.round), event.client, str(event.held), block, int(ChargeStatus.HELD)),
    )


def _charged(db: sqlite3.Connection, event: events.ClientCharged, block: int) -> None:
    _decide(db, event, block, ChargeStatus.CHARGED, event.outcome)


def _acquitted(db: sqlite3.Connection, event: events.ClientAcquitted, block: int) -> None:
    _decide(db, event, block, ChargeStatus.ACQUITTED, Outcome.PASSED)


def _unlocked(db: sqlite3.Connection, event: events.AuditUnlocked, block: int) -> None:
    _decide(db, event, block, ChargeStatus.UNLOCKED, Outcome.NONE)


def _decide(
    db: sqlite3.Connection,
    event: events.ClientCharged | events.ClientAcquitted | events.AuditUnlocked,
    block: int,
    status: ChargeStatus,
    outcome: Outcome,
) -> None:
    db.execute(
        "UPDATE charges SET status = ?, outcome = ?, decided_at = ? WHERE round = ? AND client = ?",
        (int(status), int(outcome), block, key_of(event.round), event.client),
    )


def _penalised(db: sqlite3.Connection, event: events.MemberPenalised, block: int) -> None:
    del block
    db.execute(
        "INSERT INTO penalties VALUES (?, ?, ?, ?)",
        (key_of(event.round), event.member, int(event.fault), str(event.amount)),
    )


def _claimed(db: sqlite3.Connection, event: events.Claimed, block: int) -> None:
    del block
    db.execute(
        "INSERT INTO claims VALUES (?, ?, ?)",
        (key_of(event.round), event.account, str(event.amount)),
    )


def _refunded(db: sqlite3.Connection, event: events.Refunded, block: int) -> None:
    db.execute("INSERT INTO refunds VALUES (?, ?)", (str(event.amount), block))


def _unbonding(db: sqlite3.Connection, event: events.UnbondingStarted, block: int) -> None:
    del block
    db.execute(
        "INSERT INTO unbonding VALUES (?, ?, ?, 0)",
        (event.owner, int(event.role), event.withdrawable_at),
    )


def _withdrawn(db: sqlite3.Connection, event: events.Withdrawn, block: int) -> None:
    del block
    db.execute(
        "UPDATE unbonding SET left = 1 WHERE address = ? AND role = ?",
        (event.owner, int(event.role)),
    )


def _closed(db: sqlite3.Connection, event: events.JobClosed, block: int) -> None:
    db.execute("INSERT INTO closed VALUES (?, ?)", (event.rounds, block))


_HANDLERS: dict[type[Event], Callable[[sqlite3.Connection, Any, int], None]] = {
    events.MemberJoined: _member_joined,
    events.EndpointAnnounced: _endpoint,
    events.KeyRegistered: _key,
    events.SeatChanged: _seat,
    events.ClientEnrolled: _enrolled,
    events.DatasetRootReplaced: _root,
    events.ClientStatusChanged: _status,
    events.RoundOpened: _opened,
    events.RollCommitted: _rolled,
    events.PartialPublished: _partial,
    events.BeaconPublished: _beacon,
    events.VerdictAttested: _attested,
    events.VerdictDecided: _decided,
    events.RoundFinalised: _finalised,
    events.RoundVoided: _voided,
    events.AuditHeld: _held,
    events.ClientCharged: _charged,
    events.ClientAcquitted: _acquitted,
    events.AuditUnlocked: _unlocked,
    events.MemberPenalised: _penalised,
    events.Claimed: _claimed,
    events.Refunded: _refunded,
    events.UnbondingStarted: _unbonding,
    events.Withdrawn: _withdrawn,
    events.JobClosed: _closed,
}
