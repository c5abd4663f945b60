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
from opfl_chain.protocol.identifiers import Address, RoundNumber
from opfl_chain.protocol.merkle import MerkleTree
from opfl_chain.protocol.statements import GradientCommitment


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

    @property
    def tree(self) -> MerkleTree:
        pairs = [(entry.client, entry.commitment) for entry in self.entries]
        return batch_tree(self.job.id, self.number, pairs)

    def encode(self) -> bytes:
        rows = [
            [entry.client, tohex(entry.commitment), tohex(entry.signature)]
            for entry in self.entries
        ]
        return json.dumps(rows).encode()

    @classmethod
    def decode(cls, job: Job, number: RoundNumber, root: bytes, data: bytes) -> Batch | None:
        """The batch with this root, or None if the data are anything else."""
        try:
            rows: Any = json.loads(data)
            entries = [
                Entry(checksum(client), unhex(commitment), unhex(signature))
                for client, commitment, signature in rows
            ]
            batch = cls(job, number, entries)
            return batch if entries and batch.tree.root == root else None
        except (ValueError, TypeError, RecursionError, AttributeError):
            return None

    @cached_property
    def signed(self) -> dict[Address, Entry]:
        """Entries that their clients signed: a relayer speaks for nobody."""
        return {entry.client: entry for entry in self.entries if self._is_signed(entry)}

    def proof(self, client: Address) -> BatchProof:
        """What shows on chain that a client committed."""
        place = next(i for i, entry in enumerate(self.entries) if entry.client == client)
        entry = self.entries[place]
        return BatchProof(entry.commitment, tuple(self.tree.proof(place)), entry.signature)

    def _is_signed(self, entry: Entry) -> bool:
        statement = GradientCommitment(self.job.id, self.number, entry.client, entry.commitment)
        return signer_of(statement, self.job.domain, entry.signature) == entry.client
