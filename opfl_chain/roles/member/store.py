"""Storage of a member: bundles of clients, messages of members, and its own findings.

Whatever is about a round is keyed by its opening: a round that is opened again after a
reorganisation starts from nothing, and nothing that was said about the other one is said about it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.echo import Signed
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.protocol.roll import RollEntry
from opfl_chain.protocol.verdict import Outcome
from opfl_chain.roles.state import State

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS bundles (
    opening BLOB, kind INTEGER, client TEXT, content_hash BLOB, body BLOB, signature BLOB,
    PRIMARY KEY (opening, kind, client, content_hash)
);
CREATE TABLE IF NOT EXISTS messages (
    opening BLOB, slot INTEGER, author TEXT, content_hash BLOB, body BLOB, signature BLOB,
    PRIMARY KEY (opening, slot, author, content_hash)
);
CREATE TABLE IF NOT EXISTS told (
    opening BLOB, slot INTEGER, member TEXT, PRIMARY KEY (opening, slot, member)
);
CREATE TABLE IF NOT EXISTS concluded (
    opening BLOB, slot INTEGER, echoed TEXT, PRIMARY KEY (opening, slot)
);
CREATE TABLE IF NOT EXISTS late (opening BLOB, slot INTEGER, PRIMARY KEY (opening, slot));
CREATE TABLE IF NOT EXISTS rolls (
    opening BLOB, client INTEGER, address TEXT, commitment BLOB, content_hash BLOB,
    PRIMARY KEY (opening, client)
);
CREATE TABLE IF NOT EXISTS partials (opening BLOB PRIMARY KEY, message BLOB, signature BLOB);
CREATE TABLE IF NOT EXISTS sheets (
    opening BLOB, slot INTEGER, body BLOB, PRIMARY KEY (opening, slot)
);
CREATE TABLE IF NOT EXISTS verdicts (opening BLOB PRIMARY KEY, passes BLOB);
CREATE TABLE IF NOT EXISTS summed (opening BLOB PRIMARY KEY, verdict BLOB);
CREATE TABLE IF NOT EXISTS results (
    opening BLOB PRIMARY KEY, verdict BLOB, aggregate BLOB, model BLOB
);
CREATE TABLE IF NOT EXISTS outcomes (
    opening BLOB, client TEXT, outcome INTEGER, PRIMARY KEY (opening, client)
);
CREATE TABLE IF NOT EXISTS heard (
    opening BLOB, attempt INTEGER, PRIMARY KEY (opening, attempt)
);
CREATE TABLE IF NOT EXISTS failed_meetings (
    epoch INTEGER, seats TEXT, PRIMARY KEY (epoch, seats)
);
CREATE TABLE IF NOT EXISTS found_outside (
    opening BLOB, client TEXT, attempt INTEGER, PRIMARY KEY (opening, client, attempt)
);
CREATE TABLE IF NOT EXISTS invalid_answers (
    opening BLOB, client TEXT, content_hash BLOB, PRIMARY KEY (opening, client, content_hash)
);
CREATE TABLE IF NOT EXISTS components_shown_to (
    opening BLOB, member TEXT, client TEXT, component INTEGER,
    PRIMARY KEY (opening, member, client, component)
);
CREATE TABLE IF NOT EXISTS handed_keys (
    opening BLOB, content_hash BLOB, component INTEGER, key BLOB,
    PRIMARY KEY (opening, content_hash, component)
);
CREATE TABLE IF NOT EXISTS handed_to (
    opening BLOB, member TEXT, content_hash BLOB, PRIMARY KEY (opening, member, content_hash)
);
CREATE TABLE IF NOT EXISTS faults (
    opening BLOB, member TEXT, fault INTEGER, PRIMARY KEY (opening, member, fault)
);
"""
_ROUND_TABLES: Final = (
    "bundles", "messages", "told", "concluded", "late", "sheets", "handed_keys", "handed_to",
)  # fmt: skip
"""Tables whose rows of a round are deleted when nothing about it can be asked any more."""


@dataclass(frozen=True)
class SignedBundle:
    """A client's bundle in its wire format, with the signature of its content hash."""

    content_hash: bytes
    body: bytes
    signature: bytes


class MemberStore:
    """Findings are written once and never replaced: a member does not contradict itself."""

    def __init__(self, state: State) -> None:
        self._state = state

    # --- bundles of clients

    def keep_bundle(
        self, opening: bytes, kind: BundleKind, client: Address, bundle: SignedBundle
    ) -> None:
        """Store a bundle durably."""
        self._state.write(
            "INSERT OR IGNORE INTO bundles VALUES (?, ?, ?, ?, ?, ?)",
            opening,
            int(kind),
            client,
            bundle.content_hash,
            bundle.body,
            bundle.signature,
        )

    def bundle(
        self, opening: bytes, kind: BundleKind, client: Address, content_hash: bytes
    ) -> SignedBundle | None:
        row = self._state.one(
            "SELECT content_hash, body, signature FROM bundles"
            " WHERE opening = ? AND kind = ? AND client = ? AND content_hash = ?",
            opening,
            int(kind),
            client,
            content_hash,
        )
        return SignedBundle(*row) if row else None

    def has_bundle(
        self, opening: bytes, kind: BundleKind, client: Address, content_hash: bytes
    ) -> bool:
        """Return whether a bundle is stored, without reading its megabytes."""
        found = self._state.one(
            "SELECT 1 FROM bundles"
            " WHERE opening = ? AND kind = ? AND client = ? AND content_hash = ?",
            opening,
            int(kind),
            client,
            content_hash,
        )
        return found is not None

    def bundle_hashes(self, opening: bytes, kind: BundleKind) -> dict[Address, list[bytes]]:
        """Content hashes of all bundles of a kind, by client, the smallest first."""
        found: dict[Address, list[bytes]] = {}
        for client, content_hash in self._state.all(
            "SELECT client, content_hash FROM bundles WHERE opening = ? AND kind = ?"
            " ORDER BY content_hash",
            opening,
            int(kind),
        ):
            found.setdefault(client, []).append(content_hash)
        return found

    # --- messages of members

    def keep_message(self, opening: bytes, slot: int, author: Address, message: Signed) -> None:
        """Store a message durably, beside others of the same slot if there are any.

        Under its author and not under a seat: seats change hands, and what a member said is never
        what its successor said.
        """
        self._state.write(
            "INSERT OR IGNORE INTO messages VALUES (?, ?, ?, ?, ?, ?)",
            opening,
            slot,
            author,
            message.hash,
            message.body,
            message.signature,
        )

    def messages(self, opening: bytes, slot: int, author: Address) -> list[Signed]:
        """All messages of an author in a slot, in the order in which they came."""
        return [
            Signed(*row)
            for row in self._state.all(
                "SELECT body, signature FROM messages"
                " WHERE opening = ? AND slot = ? AND author = ? ORDER BY rowid",
                opening,
                slot,
                author,
            )
        ]

    def first_message(self, opening: bytes, slot: int, author: Address) -> Signed | None:
        found = self.messages(opening, slot, author)
        return found[0] if found else None

    def message(
        self, opening: bytes, slot: int, author: Address, content_hash: bytes
    ) -> Signed | None:
        row = self._state.one(
            "SELECT body, signature FROM messages"
            " WHERE opening = ? AND slot = ? AND author = ? AND content_hash = ?",
            opening,
            slot,
            author,
            content_hash,
        )
        return Signed(*row) if row else None

    def slots(self, opening: bytes) -> list[int]:
        rows = self._state.all(
            "SELECT DISTINCT slot FROM messages WHERE opening = ? ORDER BY slot", opening
        )
        return [slot for (slot,) in rows]

    def keep_told(self, opening: bytes, slot: int, member: Address) -> None:
        self._state.write("INSERT OR IGNORE INTO told VALUES (?, ?, ?)", opening, slot, member)

    def has_told(self, opening: bytes, slot: int, member: Address) -> bool:
        """Return whether a peer has confirmed that it has our message."""
        query = "SELECT 1 FROM told WHERE opening = ? AND slot = ? AND member = ?"
        return self._state.one(query, opening, slot, member) is not None

    def keep_concluded(self, opening: bytes, slot: int, echoed: Collection[int]) -> None:
        """Note that a step is over, and whose echoes counted: later ones change nothing."""
        seats = "".join(map(str, sorted(echoed)))
        self._state.write("INSERT OR IGNORE INTO concluded VALUES (?, ?, ?)", opening, slot, seats)

    def concluded(self, opening: bytes, slot: int) -> set[int] | None:
        """The seats whose echoes counted in a step, or None while it is not over."""
        query = "SELECT echoed FROM concluded WHERE opening = ? AND slot = ?"
        row = self._state.one(query, opening, slot)
        return set(map(int, row[0])) if row else None

    def keep_late(self, opening: bytes, slot: int) -> None:
        """Note that we came too late to a step."""
        self._state.write("INSERT OR IGNORE INTO late VALUES (?, ?)", opening, slot)

    def is_late(self, opening: bytes, slot: int) -> bool:
        query = "SELECT 1 FROM late WHERE opening = ? AND slot = ?"
        return self._state.one(query, opening, slot) is not None

    # --- findings

    def keep_roll(self, opening: bytes, entries: Sequence[RollEntry]) -> None:
        """Store the roll that members agreed on; the first one of an opening stands."""
        with self._state.transaction():
            if self.roll(opening):
                return
            for each in entries:
                self._state.write(
                    "INSERT INTO rolls VALUES (?, ?, ?, ?, ?)",
                    opening,
                    each.client,
                    each.address,
                    each.commitment,
                    each.content_hash,
                )

    def roll(self, opening: bytes) -> list[RollEntry]:
        """The entries of the roll that members agreed on; empty before."""
        return [
            RollEntry(ClientIndex(client), address, commitment, content_hash)
            for client, address, commitment, content_hash in self._state.all(
                "SELECT client, address, commitment, content_hash FROM rolls WHERE opening = ?"
                " ORDER BY client",
                opening,
            )
        ]

    def keep_partial(self, opening: bytes, message: bytes, signature: bytes) -> None:
        """Store our signature of the one roll of a round."""
        self._state.write(
            "INSERT OR IGNORE INTO partials VALUES (?, ?, ?)", opening, message, signature
        )

    def partial(self, opening: bytes) -> tuple[bytes, bytes] | None:
        """The signed message, and the signature."""
        row = self._state.one("SELECT message, signature FROM partials WHERE opening = ?", opening)
        return (row[0], row[1]) if row else None

    def keep_sheet(self, opening: bytes, slot: int, body: bytes) -> None:
        """Store the answers that our report in a slot commits to."""
        self._state.write("INSERT OR IGNORE INTO sheets VALUES (?, ?, ?)", opening, slot, body)

    def replace_sheet(self, opening: bytes, slot: int, body: bytes) -> None:
        """Store the answers for a report that we have not made yet.

        Those of before a crash bind nothing, and may lack what has come since.
        """
        self._state.write("INSERT OR REPLACE INTO sheets VALUES (?, ?, ?)", opening, slot, body)

    def sheet(self, opening: bytes, slot: int) -> bytes | None:
        row = self._state.one(
            "SELECT body FROM sheets WHERE opening = ? AND slot = ?", opening, slot
        )
        return row[0] if row else None

    def keep_verdict(self, opening: bytes, passes: bytes) -> None:
        self._state.write("INSERT OR IGNORE INTO verdicts VALUES (?, ?)", opening, passes)

    def verdict(self, opening: bytes) -> bytes | None:
        """Our verdict: a bitmap of the clients that passed."""
        row = self._state.one("SELECT passes FROM verdicts WHERE opening = ?", opening)
        return row[0] if row else None

    def may_sum(self, opening: bytes, verdict: bytes) -> bool:
        """Return whether this is the one verdict of the round whose sum we reveal; the first is.

        Two sums of one round that differ by a client would reveal its gradient.
        """
        self._state.write("INSERT OR IGNORE INTO summed VALUES (?, ?)", opening, verdict)
        row = self._state.one("SELECT verdict FROM summed WHERE opening = ?", opening)
        return bool(row[0] == verdict)

    def keep_result(self, opening: bytes, verdict: bytes, aggregate: bytes, model: bytes) -> None:
        self._state.write(
            "INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?)", opening, verdict, aggregate, model
        )

    def result(self, opening: bytes) -> tuple[bytes, bytes, bytes] | None:
        """Hashes of the verdict, the aggregate and the next model."""
        row = self._state.one(
            "SELECT verdict, aggregate, model FROM results WHERE opening = ?", opening
        )
        return (row[0], row[1], row[2]) if row else None

    def keep_outcome(self, opening: bytes, client: Address, outcome: Outcome) -> None:
        """Store how the audit of a client ended, for us to sign."""
        self._state.write(
            "INSERT OR IGNORE INTO outcomes VALUES (?, ?, ?)", opening, client, int(outcome)
        )

    def outcome(self, opening: bytes, client: Address) -> Outcome | None:
        row = self._state.one(
            "SELECT outcome FROM outcomes WHERE opening = ? AND client = ?", opening, client
        )
        return Outcome(row[0]) if row else None

    def keep_heard(self, opening: bytes, attempt: int, outcomes: Mapping[Address, Outcome]) -> None:
        """Store how audits ended, and that their hearing is over, so that none is begun again."""
        with self._state.transaction():
            for client, outcome in outcomes.items():
                self.keep_outcome(opening, client, outcome)
            self._state.write("INSERT OR IGNORE INTO heard VALUES (?, ?)", opening, attempt)

    def is_heard(self, opening: bytes, attempt: int) -> bool:
        query = "SELECT 1 FROM heard WHERE opening = ? AND attempt = ?"
        return self._state.one(query, opening, attempt) is not None

    def keep_failed_meeting(self, epoch: int, seats: Sequence[Address]) -> None:
        """Note that a meeting among these seats failed though nobody was away."""
        self._state.write(
            "INSERT OR IGNORE INTO failed_meetings VALUES (?, ?)", epoch, " ".join(seats)
        )

    def has_failed_meeting(self, epoch: int, seats: Sequence[Address]) -> bool:
        query = "SELECT 1 FROM failed_meetings WHERE epoch = ? AND seats = ?"
        return self._state.one(query, epoch, " ".join(seats)) is not None

    def keep_found_outside(self, opening: bytes, client: Address, attempt: int) -> int:
        """Note that a hearing found a contribution outside; return how many hearings did."""
        self._state.write(
            "INSERT OR IGNORE INTO found_outside VALUES (?, ?, ?)", opening, client, attempt
        )
        query = "SELECT count(*) FROM found_outside WHERE opening = ? AND client = ?"
        return int(self._state.one(query, opening, client)[0])

    def keep_invalid_answer(self, opening: bytes, client: Address, content_hash: bytes) -> None:
        """Note an answer that members agreed not to count: the client may send another."""
        self._state.write(
            "INSERT OR IGNORE INTO invalid_answers VALUES (?, ?, ?)", opening, client, content_hash
        )

    def is_invalid_answer(self, opening: bytes, client: Address, content_hash: bytes) -> bool:
        row = self._state.one(
            "SELECT 1 FROM invalid_answers WHERE opening = ? AND client = ? AND content_hash = ?",
            opening,
            client,
            content_hash,
        )
        return row is not None

    def keep_fault(self, opening: bytes, member: Address, fault: int) -> None:
        """Note a fault of a member that we saw ourselves and certify."""
        self._state.write("INSERT OR IGNORE INTO faults VALUES (?, ?, ?)", opening, member, fault)

    def faults(self, opening: bytes) -> list[tuple[Address, int]]:
        return list(self._state.all("SELECT member, fault FROM faults WHERE opening = ?", opening))

    # --- keys of components, for whoever took a seat

    def keep_handed_key(
        self, opening: bytes, content_hash: bytes, component: int, key: bytes
    ) -> None:
        """Store a key that was handed to us, and opens what it is for."""
        self._state.write(
            "INSERT OR IGNORE INTO handed_keys VALUES (?, ?, ?, ?)",
            opening,
            content_hash,
            component,
            key,
        )

    def handed_key(self, opening: bytes, content_hash: bytes, component: int) -> bytes | None:
        row = self._state.one(
            "SELECT key FROM handed_keys WHERE opening = ? AND content_hash = ? AND component = ?",
            opening,
            content_hash,
            component,
        )
        return row[0] if row else None

    def may_show(
        self, opening: bytes, member: str, client: Address, component: int, most: int
    ) -> bool:
        """Return whether a member may see a component: of a contribution so many at most.

        In all sessions of a round together: three components would show it. Each referee is counted
        by itself, or one that saw two would keep the next one from settling a dispute about the
        third.
        """
        query = (
            "SELECT component FROM components_shown_to"
            " WHERE opening = ? AND member = ? AND client = ?"
        )
        shown = {each for (each,) in self._state.all(query, opening, member, client)}
        if component not in shown and len(shown) >= most:
            return False
        self._state.write(
            "INSERT OR IGNORE INTO components_shown_to VALUES (?, ?, ?, ?)",
            opening,
            member,
            client,
            component,
        )
        return True

    def keep_handed_to(self, opening: bytes, member: Address, content_hash: bytes) -> None:
        self._state.write(
            "INSERT OR IGNORE INTO handed_to VALUES (?, ?, ?)", opening, member, content_hash
        )

    def has_handed_to(self, opening: bytes, member: Address, content_hash: bytes) -> bool:
        """Return whether a member has confirmed that it has our keys of a bundle."""
        query = "SELECT 1 FROM handed_to WHERE opening = ? AND member = ? AND content_hash = ?"
        return self._state.one(query, opening, member, content_hash) is not None

    # --- forgetting

    def openings(self) -> list[bytes]:
        """Openings of which bundles or messages are stored."""
        rows = self._state.all("SELECT opening FROM bundles UNION SELECT opening FROM messages")
        return [opening for (opening,) in rows]

    def forget(self, opening: bytes) -> None:
        """Delete bundles and messages of a round that nobody can ask about any more."""
        with self._state.transaction():
            for table in _ROUND_TABLES:
                self._state.write(f"DELETE FROM {table} WHERE opening = ?", opening)
