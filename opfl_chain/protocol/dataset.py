"""Commitments to training inputs and to the whole data set of a client."""

from collections.abc import Iterable

from opfl_chain.protocol.abi import abi_encode, uint, word
from opfl_chain.protocol.hashing import TAG_INPUT, double_keccak256, keccak256
from opfl_chain.protocol.merkle import MerkleTree
from opfl_chain.protocol.widths import bytes32


def input_commitment(salt: bytes, encoded_input: bytes) -> bytes:
    """Commit to one input. The 32-byte ``salt`` is random, secret and used once."""
    return keccak256(TAG_INPUT, bytes32("salt", salt), encoded_input)


def dataset_leaf(t: int, commitment: bytes) -> bytes:
    """Bind an input commitment to the round ``t`` in which the input is used."""
    return double_keccak256(abi_encode(uint("t", t, 256), word("commitment", commitment)))


def dataset_tree(commitments: Iterable[bytes]) -> MerkleTree:
    """Build the tree over the input commitments of rounds 0, 1, 2, ..."""
    return MerkleTree.of(dataset_leaf(t, commitment) for t, commitment in enumerate(commitments))
