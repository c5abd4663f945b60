"""The claims of a round: direct commitments, and those that a batch holds under one root."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from opfl_chain.chain.bindings.types import BatchProof, ClientStatus
from opfl_chain.chain.keys import signer_of
from opfl_chain.chain.rpc import checksum, tohex, unhex
from opfl_chain.protocol.accumulator import batch_tree
from opfl_chain.protocol.delivery import Claim
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.hashing import MerkleTree
from opfl_chain.protocol.identifiers import Address, RoundNumber
from opfl_chain.protocol.statements import GradientCommitment
from opfl_chain.roles.job import Job
from opfl_chain.roles.peers import Peers
from opfl_chain.roles.state import State
from opfl_chain.roles.view.view import ChainView, RoundView
from opfl_chain.system.backoff import Backoff
from opfl_chain.transport.routes import parse_json

_MOST_ENTRY_BYTES = 300
"""Size limit of an address, a commitment and a signature in JSON."""
SCHEMA = "CREATE TABLE IF NOT EXISTS batches (root BLOB PRIMARY KEY, body BLOB);"


@dataclass(frozen=True)
class Entry:
    client: Address
    commitment: bytes
    signature: bytes


@dataclass(frozen=True)
class Batch:
    """The signed commitments of one batch, in the order of the leaves."""

    job: Job
    number: RoundNumber
    entries: Sequence[Entry]

    @cached_property
    def tree(self) -> MerkleTree:
        pairs = [(entry.client, entry.commitment) for entry in self.entries]
        return batch_tree(self.job.id, self.number, pairs)

    @staticmethod
    def most_bytes(clients: int) -> int:
        """Return the size limit of a list in a job of this many clients, with room for junk."""
        return _MOST_ENTRY_BYTES * (2 * clients + 16)

    def encode(self) -> bytes:
        rows = [
            [entry.client, tohex(entry.commitment), tohex(entry.signature)]
            for entry in self.entries
        ]
        return json.dumps(rows).encode()

    @classmethod
    def decode(cls, job: Job, number: RoundNumber, root: bytes, data: bytes) -> Batch | None:
        """Return the batch with this root, or None if the data encode anything else."""
        batch = cls.parse(job, number, data)
        return batch if batch is not None and batch.tree.root == root else None

    @classmethod
    def parse(cls, job: Job, number: RoundNumber, data: bytes) -> Batch | None:
        """Return the batch in the data, whatever its root, or None if it is malformed."""
        try:
            rows: Any = parse_json(data)
            batch = cls(
                job,
                number,
                [
                    Entry(checksum(client), unhex(commitment), unhex(signature))
                    for client, commitment, signature in rows
                ],
            )
            batch.tree  # noqa: B018 raises on malformed commitments
        except (ValueError, TypeError, AttributeError, ProtocolError):
            return None
        return batch

    @cached_property
    def valid(self) -> list[Entry]:
        """Entries with a valid signature of their client: a relayer cannot commit for others."""
        return [entry for entry in self.entries if self._is_signed(entry)]

    @cached_property
    def signed(self) -> dict[Address, Entry]:
        """The one entry of each client that counts.

        The root binds neither signatures nor the order of siblings, so the choice must not depend
        on them: if a client signed twice, the lowest commitment counts.
        """
        descending = sorted(self.valid, key=lambda entry: entry.commitment, reverse=True)
        return {entry.client: entry for entry in descending}

    def merged(self, other: Batch) -> Batch:
        """Return this list, with invalid signatures replaced from another list of the same root."""
        good = {(entry.client, entry.commitment): entry for entry in (*other.valid, *self.valid)}
        entries = [good.get((entry.client, entry.commitment), entry) for entry in self.entries]
        return Batch(self.job, self.number, entries)

    def proof(self, client: Address) -> BatchProof | None:
        """Return the on-chain proof that a client committed, or None if it did not."""
        if (entry := self.signed.get(client)) is None:
            return None
        place = self.entries.index(entry)
        return BatchProof(entry.commitment, tuple(self.tree.proof(place)), entry.signature)

    def _is_signed(self, entry: Entry) -> bool:
        statement = GradientCommitment(self.job.id, self.number, entry.client, entry.commitment)
        return signer_of(statement, self.job.domain, entry.signature) == entry.client


class Claims:
    """Reads are safe in any thread; only the thread that acts may call `fetch`."""

    def __init__(
        self, view: ChainView, state: State, peers: Peers, asking: Backoff | None = None
    ) -> None:
        self._view = view
        self._state = state
        self._peers = peers
        self._read: dict[bytes, Batch] = {}
        self._asking = asking or Backoff()

    def commitments(self, round_: RoundView) -> dict[Address, bytes]:
        """Commitments of all clients in the round; a direct one takes precedence over the batch.

        A batch whose list nobody has counts as empty: a relayer gains nothing by hiding it.
        """
        found = dict(self._view.direct_commitments(round_.id))
        if (batch := self.batch(round_)) is None:
            return found
        for client, entry in batch.signed.items():
            if client not in found and self._may_be_relayed(client, round_):
                found[client] = entry.commitment
        return found

    def has_committed(self, round_: RoundView, client: Address) -> bool:
        """Return whether one client is in the round, without reading all commitments."""
        if self._view.direct_commitment(round_.id, client) is not None:
            return True
        batch = self.batch(round_)
        return batch is not None and client in batch.signed and self._may_be_relayed(client, round_)

    def _may_be_relayed(self, client: Address, round_: RoundView) -> bool:
        """A client that had left or was suspended when the round closed cannot be relayed."""
        return self._view.client_status(client, round_.schedule.commit) is ClientStatus.ACTIVE

    def of(self, round_: RoundView) -> dict[Address, Claim]:
        """Claims of a settled round, in the order of client indices."""
        clients = self._view.clients()
        commitments = self.commitments(round_)
        return {
            client: Claim(
                clients[client].index,
                round_.number,
                commitments[client],
                clients[client].root,
                self._view.is_audited(round_, client),
            )
            for client in sorted(commitments, key=lambda each: clients[each].index)
        }

    def lacks_batch(self, round_: RoundView) -> bool:
        """Return whether there is a batch on chain whose list we do not have."""
        return self._view.batch(round_.id) is not None and self.batch(round_) is None

    def batch(self, round_: RoundView) -> Batch | None:
        """The round's batch, if there is one and we have its list."""
        committed = self._view.batch(round_.id)
        if committed is None:
            return None
        root, _ = committed
        if (batch := self._read.get(root)) is None:
            batch = Batch.decode(self._view.job, round_.number, root, self.stored(root) or b"")
            if batch is not None:
                self._read = {root: batch}  # only the newest: others are rarely needed
        return batch

    def fetch(self, round_: RoundView) -> None:
        """Ask everybody for the list of the round's batch, until all signatures in it are valid.

        A relayer could send some members a list with a broken signature, and others the right one.
        """
        committed, batch = self._view.batch(round_.id), self.batch(round_)
        if committed is None or (batch is not None and self._all_signed(batch)):
            return
        root, path = committed[0], f"/batches/{tohex(committed[0])}"
        if not self._asking.is_due(path):
            return
        self._asking.failed(path)
        for body in self._peers.lists(path, Batch.most_bytes(len(self._view.clients()))):
            found = Batch.decode(self._view.job, round_.number, root, body)
            if found is None:
                continue
            batch = found if batch is None else batch.merged(found)
            if self._all_signed(batch):
                break
        if batch is not None:
            self.keep(root, batch.encode())
            self._read = {root: batch}

    def stored(self, root: bytes) -> bytes | None:
        row = self._state.one("SELECT body FROM batches WHERE root = ?", root)
        return row[0] if row else None

    def keep(self, root: bytes, body: bytes) -> None:
        self._state.write("INSERT OR REPLACE INTO batches VALUES (?, ?)", root, body)

    def _all_signed(self, batch: Batch) -> bool:
        clients, valid = self._view.clients(), set(batch.valid)
        return all(entry in valid for entry in batch.entries if entry.client in clients)
