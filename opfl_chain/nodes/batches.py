"""Signed commitments of many clients under one root, as they travel between daemons."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from opfl_chain.chain.bindings.types import BatchProof
from opfl_chain.chain.rpc import checksum, tohex, unhex
from opfl_chain.chain.statement_signatures import signer_of
from opfl_chain.nodes.job import Job
from opfl_chain.protocol.batch import batch_tree
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.identifiers import Address, RoundNumber
from opfl_chain.protocol.merkle import MerkleTree
from opfl_chain.protocol.statements import GradientCommitment
from opfl_chain.transport.messages import parse_json

_MOST_ENTRY_BYTES = 300
"""Of an address, a commitment and a signature in JSON."""


@dataclass(frozen=True)
class Entry:
    client: Address
    commitment: bytes
    signature: bytes


@dataclass(frozen=True)
class Batch:
    """In the order of the leaves."""

    job: Job
    number: RoundNumber
    entries: Sequence[Entry]

    @cached_property
    def tree(self) -> MerkleTree:
        pairs = [(entry.client, entry.commitment) for entry in self.entries]
        return batch_tree(self.job.id, self.number, pairs)

    @staticmethod
    def most_bytes(clients: int) -> int:
        """How long a list may be in a job of so many clients, with some room for nonsense in it."""
        return _MOST_ENTRY_BYTES * (2 * clients + 16)

    def encode(self) -> bytes:
        rows = [
            [entry.client, tohex(entry.commitment), tohex(entry.signature)]
            for entry in self.entries
        ]
        return json.dumps(rows).encode()

    @classmethod
    def decode(cls, job: Job, number: RoundNumber, root: bytes, data: bytes) -> Batch | None:
        """The batch with this root, or None if the data are anything else."""
        batch = cls.parse(job, number, data)
        return batch if batch is not None and batch.tree.root == root else None

    @classmethod
    def parse(cls, job: Job, number: RoundNumber, data: bytes) -> Batch | None:
        """A list with a tree over it, of whatever root."""
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
            batch.tree  # noqa: B018 refuses what is no commitment
        except (ValueError, TypeError, AttributeError, ProtocolError):
            return None
        return batch

    @cached_property
    def valid(self) -> list[Entry]:
        """Entries that their clients signed: a relayer speaks for nobody."""
        return [entry for entry in self.entries if self._is_signed(entry)]

    @cached_property
    def signed(self) -> dict[Address, Entry]:
        """The entry that counts of each client.

        The root binds neither signatures nor the order of siblings, so nothing depends on these: of
        a client that signed twice, the lowest commitment counts.
        """
        descending = sorted(self.valid, key=lambda entry: entry.commitment, reverse=True)
        return {entry.client: entry for entry in descending}

    def merged(self, other: Batch) -> Batch:
        """This list, with signatures from another one of the same root where its own are wrong."""
        good = {(entry.client, entry.commitment): entry for entry in (*other.valid, *self.valid)}
        entries = [good.get((entry.client, entry.commitment), entry) for entry in self.entries]
        return Batch(self.job, self.number, entries)

    def proof(self, client: Address) -> BatchProof | None:
        """What shows on chain that a client committed."""
        if (entry := self.signed.get(client)) is None:
            return None
        place = self.entries.index(entry)
        return BatchProof(entry.commitment, tuple(self.tree.proof(place)), entry.signature)

    def _is_signed(self, entry: Entry) -> bool:
        statement = GradientCommitment(self.job.id, self.number, entry.client, entry.commitment)
        return signer_of(statement, self.job.domain, entry.signature) == entry.client
