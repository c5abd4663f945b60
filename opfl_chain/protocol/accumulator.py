"""The rolling hash over all commitments of a round, in the order of the chain.

It is cut to 28 bytes, so that contracts keep it in one word with the deadline of the phase.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from opfl_chain.protocol import abi
from opfl_chain.protocol.hashing import TAG_ROUND, MerkleTree, double_keccak256, keccak256
from opfl_chain.protocol.identifiers import Address, JobId, RoundNumber
from opfl_chain.protocol.widths import bytes32, fixed_bytes, unsigned_bytes

_DIRECT: Final = b"\x01"
_BATCH: Final = b"\x02"
ACCUMULATOR_BYTES: Final = 28


@dataclass(frozen=True)
class DirectCommitment:
    """A commitment that the client sent to the chain itself."""

    client: Address
    commitment: bytes


@dataclass(frozen=True)
class BatchCommitment:
    """A Merkle root over the signed commitments of ``count`` clients."""

    root: bytes
    count: int


Commitment = DirectCommitment | BatchCommitment


def initial_accumulator(
    chain_id: int, jobs: Address, job: JobId, round_: RoundNumber, model_hash: bytes
) -> bytes:
    """Return the accumulator of a round without commitments."""
    digest = keccak256(
        abi.abi_encode(
            abi.word("tag", TAG_ROUND),
            abi.uint("chain id", chain_id, 256),
            abi.address("jobs", jobs),
            abi.job_id(job),
            abi.round_number(round_),
            abi.word("model hash", model_hash),
        )
    )
    return digest[:ACCUMULATOR_BYTES]


def accumulate(accumulator: bytes, commitment: Commitment) -> bytes:
    """Return the accumulator after one more commitment."""
    accumulator = fixed_bytes("accumulator", accumulator, ACCUMULATOR_BYTES)
    if isinstance(commitment, DirectCommitment):
        client = abi.address_bytes("client", commitment.client)
        value = bytes32("commitment", commitment.commitment)
        return keccak256(_DIRECT, accumulator, client, value)[:ACCUMULATOR_BYTES]
    root = bytes32("batch root", commitment.root)
    count = unsigned_bytes("count", commitment.count, 32)
    return keccak256(_BATCH, accumulator, root, count)[:ACCUMULATOR_BYTES]


def accumulate_all(accumulator: bytes, commitments: Iterable[Commitment]) -> bytes:
    """Return the accumulator after all ``commitments``, in order."""
    for commitment in commitments:
        accumulator = accumulate(accumulator, commitment)
    return accumulator


def batch_leaf(job: JobId, round_: RoundNumber, client: Address, commitment: bytes) -> bytes:
    """Return the leaf of one client's gradient commitment."""
    return double_keccak256(
        abi.abi_encode(
            abi.job_id(job),
            abi.round_number(round_),
            abi.address("client", client),
            abi.word("commitment", commitment),
        )
    )


def batch_tree(
    job: JobId, round_: RoundNumber, commitments: Iterable[tuple[Address, bytes]]
) -> MerkleTree:
    """Build the tree over (client, commitment) pairs in the order given."""
    return MerkleTree.of(
        batch_leaf(job, round_, client, commitment) for client, commitment in commitments
    )
