"""Commitment to the whole data set of a client.

An input is committed to as a gradient is, under its own tag and by the scheme of the policy: see
``gradient`` (scheme ``shares``) and ``gradient_tree`` (scheme ``mpc``) with ``Subject.INPUT``.
"""

from collections.abc import Iterable

from opfl_chain.protocol.abi import abi_encode, uint, word
from opfl_chain.protocol.hashing import double_keccak256
from opfl_chain.protocol.merkle import MerkleTree


def dataset_leaf(t: int, commitment: bytes) -> bytes:
    """Bind an input commitment to the round ``t`` in which the input is used."""
    return double_keccak256(abi_encode(uint("t", t, 256), word("commitment", commitment)))


def dataset_tree(commitments: Iterable[bytes]) -> MerkleTree:
    """Build the tree over the input commitments of rounds 0, 1, 2, ..."""
    return MerkleTree.of(dataset_leaf(t, commitment) for t, commitment in enumerate(commitments))
