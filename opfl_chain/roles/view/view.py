"""The on-chain state of a job, as far as this daemon has followed it.

Decisions use this state alone, so that daemons at the same block decide alike.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

from opfl_chain.chain.bindings.types import (
    ChargeStatus,
    ClientStatus,
    MemberFault,
    Outcome,
    Role,
)
from opfl_chain.chain.follow.cursor import EventCursor
from opfl_chain.chain.rpc import Rpc
from opfl_chain.protocol.identifiers import Address, ClientIndex, RoundId, RoundNumber, round_id_of
from opfl_chain.protocol.randomness import is_audited
from opfl_chain.protocol.seats import PastChange
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.roles.job import Job
from opfl_chain.roles.view.records import (
    ChargeView,
    ClientView,
    PenaltyView,
    RollOf,
    RollView,
    RoundView,
)
from opfl_chain.roles.view.tables import SCHEMA, TABLES, ChainTables, key_of


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

    def rounds_opened_since(self, block: int) -> list[RoundView]:
        """Rounds that opened in this block or later."""
        return self._rounds("WHERE opened_at >= ? ORDER BY number", block)

    def eligible(self, round_: RoundView, roll_of: RollOf) -> list[ClientView]:
        """Clients that may contribute: those active at the end of the block in which it opened.

        Who did not pass an audit of an earlier round is not, until that is decided: the chain
        suspends it only when the audit is held, which may be a block too late, or a round.
        """
        rows = self._all(
            "SELECT address, place, root FROM clients WHERE coalesce((SELECT status FROM statuses"
            " WHERE statuses.address = clients.address AND block <= ?"
            " ORDER BY statuses.rowid DESC LIMIT 1), ?) = ? ORDER BY place",
            round_.opened_at,
            int(ClientStatus.ACTIVE),
            int(ClientStatus.ACTIVE),
        )
        clients = [ClientView(address, ClientIndex(place), root) for address, place, root in rows]
        for each in self._with_undecided(round_):
            undecided = self._undecided_at(round_.opened_at, each, roll_of(each))
            clients = [client for client in clients if client.address not in undecided]
        return clients

    def _with_undecided(self, round_: RoundView) -> list[RoundView]:
        """Earlier rounds with audits that were undecided when this one opened.

        In all others as many passed or were decided as were on the roll.
        """
        rows = self._all(
            "SELECT number, count, (SELECT passes FROM attestations"
            " WHERE attestations.round = rounds.id AND hash = verdict_hash LIMIT 1),"
            " (SELECT count(*) FROM charges"
            " WHERE charges.round = rounds.id AND charges.decided_at <= ?)"
            " FROM rounds WHERE number < ? AND verdict_hash IS NOT NULL",
            round_.opened_at,
            round_.number,
        )
        left = (
            self.round(number)
            for number, count, passes, decided in rows
            if int.from_bytes(passes, "little").bit_count() + decided < count
        )
        return [each for each in left if each is not None]

    def _undecided_at(
        self, block: int, round_: RoundView, on_roll: Container[ClientIndex]
    ) -> set[Address]:
        """Clients with an audit of a round that was undecided at a block."""
        passed = Verdict.decode(self.decided_passes(round_) or b"").passed
        decided = {
            charge.client
            for charge in self._charges("WHERE round = ?", key_of(round_.id))
            if charge.decided_at is not None and charge.decided_at <= block
        }
        return {
            address
            for address, client in self.clients().items()
            if client.index in on_roll
            and client.index not in passed
            and address not in decided
            and self.is_audited(round_, address)
        }

    def on_roll(self, round_: RoundView, client: Address) -> bool | None:
        """Return whether a client is on the roll; None if the chain has the root alone."""
        if round_.roll is None:
            return False
        if not self.job.terms.public_roll:
            return None
        own = self.client(client)
        return own is not None and own.index in round_.roll.commitments

    def is_audited(self, round_: RoundView, client: Address) -> bool:
        """Return whether a settled round selects a client. Without a seed, everyone is selected."""
        if round_.seed is None:
            return True
        return is_audited(round_.seed, client, self.job.terms.audit_rate)

    def published_partials(self, round_id: RoundId) -> set[Address]:
        rows = self._all("SELECT member FROM partials WHERE round = ?", key_of(round_id))
        return {member for (member,) in rows}

    def attestations(self, round_id: RoundId) -> dict[Address, bytes]:
        """The hash of each member's attested verdict."""
        return dict(
            self._all("SELECT member, hash FROM attestations WHERE round = ?", key_of(round_id))
        )

    def decided_passes(self, round_: RoundView) -> bytes | None:
        """The bitmap of the decided verdict; None before the decision."""
        row = self._one(
            "SELECT passes FROM attestations WHERE round = ? AND hash = ? LIMIT 1",
            key_of(round_.id),
            round_.verdict_hash,
        )
        return row[0] if row else None

    @property
    def is_closed(self) -> bool:
        return self._one("SELECT 1 FROM closed") is not None

    @property
    def can_start(self) -> bool:
        """Return whether the first round can open: it takes all members and at least one client."""
        joined = all(self.joined(member) for member in self.job.members)
        return joined and self._one("SELECT 1 FROM clients LIMIT 1") is not None

    def is_stillborn(self, block: int) -> bool:
        """Return whether no round will ever open, once all blocks up to this one were seen."""
        return block >= self.job.enrolment_end and not self.can_start

    # --- members and standbys

    def roster(self) -> Sequence[Address]:
        """Members, then standbys; a place in it is a number."""
        return self.job.roster

    def seats(self) -> tuple[Address, ...]:
        """Accounts that have the seats now, by seat."""
        return self._seats_at(self.epoch)

    def seats_of(self, round_: RoundView) -> tuple[Address, ...]:
        """Accounts that have the seats in a round, by seat."""
        return self._seats_at(round_.epoch)

    @property
    def epoch(self) -> int:
        """Number of seat changes so far."""
        return int(self._one("SELECT count(*) FROM seats")[0])

    def epoch_at(self, block: int) -> int:
        """Number of seat changes up to a block."""
        return int(self._one("SELECT count(*) FROM seats WHERE block <= ?", block)[0])

    def seat_changes(self) -> list[PastChange]:
        """All changes of seats so far."""
        rows = self._all("SELECT epoch, seat FROM seats ORDER BY epoch")
        return [PastChange(self._seats_at(epoch - 1), seat) for epoch, seat in rows]

    def bench(self) -> list[Address]:
        """Accounts of the roster that have joined and have no seat, in the order of the roster."""
        seats = self.seats()
        return [each for each in self.roster() if each not in seats and self.joined(each)]

    def joined(self, member: Address) -> bool:
        """Return whether a member or standby has staked."""
        row = self._one("SELECT joined FROM members WHERE address = ?", member)
        return bool(row and row[0] is not None)

    def sealing_key(self, member: Address) -> bytes | None:
        row = self._one("SELECT sealing_key FROM members WHERE address = ?", member)
        return row[0] if row else None

    def public_key(self, member: Address) -> bytes | None:
        """The BLS key of a member."""
        row = self._one("SELECT public_key FROM keys WHERE address = ?", member)
        return row[0] if row else None

    def announcements(self, member: Address) -> int:
        """Number of times that a member has announced an endpoint."""
        row = self._one("SELECT announcements FROM members WHERE address = ?", member)
        return row[0] if row else 0

    def endpoints(self) -> dict[Address, str]:
        """Endpoints of the members and standbys that announced one."""
        rows = self._all("SELECT address, endpoint FROM members WHERE endpoint IS NOT NULL")
        return dict(rows)

    # --- clients

    def clients(self) -> dict[Address, ClientView]:
        rows = self._all("SELECT address, place, root FROM clients ORDER BY place")
        return {
            address: ClientView(address, ClientIndex(place), root) for address, place, root in rows
        }

    def client(self, address: Address) -> ClientView | None:
        row = self._one("SELECT place, root FROM clients WHERE address = ?", address)
        return ClientView(address, ClientIndex(row[0]), row[1]) if row else None

    def client_at(self, index: ClientIndex) -> ClientView | None:
        row = self._one("SELECT address, root FROM clients WHERE place = ?", index)
        return ClientView(row[0], index, row[1]) if row else None

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

    # --- money

    def charges(self) -> list[ChargeView]:
        """All audits that were held."""
        return self._charges("")

    def undecided(self) -> list[ChargeView]:
        """Audits that are held and not decided."""
        return self._charges("WHERE status = ?", int(ChargeStatus.HELD))

    def charge(self, round_: RoundView, client: Address) -> ChargeView | None:
        found = self._charges("WHERE round = ? AND client = ?", key_of(round_.id), client)
        return found[0] if found else None

    def penalties(self) -> list[PenaltyView]:
        rows = self._all(
            "SELECT rounds.number, member, fault, amount FROM penalties"
            " JOIN rounds ON rounds.id = penalties.round ORDER BY penalties.rowid"
        )
        return [
            PenaltyView(RoundNumber(n), member, MemberFault(fault), int(amount))
            for n, member, fault, amount in rows
        ]

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

    def claims(self, account: Address) -> dict[RoundNumber, int]:
        """Return the pay of an account for its work, by round; it may be a client and a member."""
        rows = self._all(
            "SELECT rounds.number, amount FROM claims JOIN rounds ON rounds.id = claims.round"
            " WHERE account = ? ORDER BY rounds.number",
            account,
        )
        paid: dict[RoundNumber, int] = {}
        for number, amount in rows:
            paid[RoundNumber(number)] = paid.get(RoundNumber(number), 0) + int(amount)
        return paid

    @property
    def is_refunded(self) -> bool:
        """Return whether the creator has got back what was left of the budget."""
        return self._one("SELECT 1 FROM refunds") is not None

    def unbonding(self, owner: Address, role: Role) -> tuple[int, bool] | None:
        """The first block in which the owner can withdraw, and whether it has."""
        row = self._one(
            "SELECT until, left FROM unbonding WHERE address = ? AND role = ?", owner, int(role)
        )
        return (row[0], bool(row[1])) if row else None

    def close(self) -> None:
        """Close the connection of this thread."""
        if (db := getattr(self._local, "db", None)) is not None:
            db.close()
            del self._local.db

    # --- SQL

    def _seats_at(self, epoch: int) -> tuple[Address, ...]:
        seats = list(self.job.members)
        rows = self._all("SELECT seat, address FROM seats WHERE epoch <= ? ORDER BY epoch", epoch)
        for seat, address in rows:
            seats[seat] = address
        return tuple(seats)

    def _rounds(self, rest: str, *values: object) -> list[RoundView]:
        rows = self._all(
            "SELECT number, model_hash, opening, epoch, opened_at, root, count, pairs, rolled_at,"
            " seed, verdict_hash, decided_at, over, over_at, aggregate_hash, next_model_hash"
            f" FROM rounds {rest}",
            *values,
        )
        return [
            RoundView(
                round_id_of(self.job.id, RoundNumber(number)),
                RoundNumber(number),
                model_hash,
                opening,
                epoch,
                opened_at,
                self.job.schedule(opened_at),
                None if root is None else RollView(root, count, pairs),
                *others,
            )
            for number, model_hash, opening, epoch, opened_at, root, count, pairs, *others in rows
        ]

    def _charges(self, condition: str, *values: object) -> list[ChargeView]:
        rows = self._all(
            "SELECT rounds.number, client, held, held_at, status, outcome, charges.decided_at"
            f" FROM charges JOIN rounds ON rounds.id = charges.round {condition}"
            " ORDER BY rounds.number, client",
            *values,
        )
        return [
            ChargeView(
                RoundNumber(n),
                client,
                int(held),
                held_at,
                ChargeStatus(status),
                None if outcome is None else Outcome(outcome),
                decided_at,
            )
            for n, client, held, held_at, status, outcome, decided_at in rows
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
