"""Commitment to the whole data set of a client.

An input is committed to as a gradient is, under its own tag and by the scheme of the policy: see
``gradient`` (scheme ``shares``) and ``gradient_tree`` (scheme ``mpc``) with ``Subject.INPUT``.
"""

from collections.abc import Iterable, Sequence

from opfl_chain.protocol.abi import abi_encode, uint, word
from opfl_chain.protocol.hashing import double_keccak256
from opfl_chain.protocol.merkle import MerkleTree, verify_proof


def dataset_leaf(t: int, commitment: bytes) -> bytes:
    """Bind an input commitment to the round ``t`` in which the input is used."""
    return double_keccak256(abi_encode(uint("t", t, 256), word("commitment", commitment)))


def dataset_tree(commitments: Iterable[bytes]) -> MerkleTree:
    """Build the tree over the input commitments of rounds 0, 1, 2, ..."""
    return MerkleTree.of(dataset_leaf(t, commitment) for t, commitment in enumerate(commitments))


def is_input_of_round(root: bytes, t: int, commitment: bytes, proof: Sequence[bytes]) -> bool:
    """Whether the data set with this root has the commitment at round ``t``, and at no other."""
    return verify_proof(proof, root, dataset_leaf(t, commitment))
