"""Batches: many clients' signed commitments under one Merkle root."""

from collections.abc import Iterable

from opfl_chain.protocol.abi import abi_encode, address, job_id, round_number, word
from opfl_chain.protocol.hashing import double_keccak256
from opfl_chain.protocol.identifiers import Address, JobId, RoundNumber
from opfl_chain.protocol.merkle import MerkleTree


def batch_leaf(job: JobId, round_: RoundNumber, client: Address, commitment: bytes) -> bytes:
    """Return the leaf of one client's gradient commitment."""
    return double_keccak256(
        abi_encode(
            job_id(job),
            round_number(round_),
            address("client", client),
            word("commitment", commitment),
        )
    )


def batch_tree(
    job: JobId, round_: RoundNumber, commitments: Iterable[tuple[Address, bytes]]
) -> MerkleTree:
    """Build the tree over (client, commitment) pairs in the order given."""
    return MerkleTree.of(
        batch_leaf(job, round_, client, commitment) for client, commitment in commitments
    )
