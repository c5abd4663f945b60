"""Merkle trees with sorted pairs, whose proofs OpenZeppelin's ``MerkleProof`` verifies on chain.

A proof shows that a leaf is in the tree and not where: a leaf must bind all that matters.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opfl_chain.protocol.errors import MerkleError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.widths import bytes32

Proof = tuple[bytes, ...]
"""The siblings from a leaf up to the root."""


def hash_pair(left: bytes, right: bytes) -> bytes:
    """Hash two nodes, smaller first, so that a proof needs no directions."""
    return keccak256(left, right) if left <= right else keccak256(right, left)


@dataclass(frozen=True)
class MerkleTree:
    """All layers of a tree, from the leaves to the root. Make one with :meth:`of`."""

    layers: tuple[tuple[bytes, ...], ...]

    @classmethod
    def of(cls, leaves: Iterable[bytes]) -> "MerkleTree":
        """Build the tree over ``leaves`` in the order given."""
        layer = tuple(bytes32(f"leaf {i}", leaf) for i, leaf in enumerate(leaves))
        if not layer:
            raise MerkleError("a Merkle tree needs at least one leaf, and got none")
        layers = [layer]
        while len(layer) > 1:
            layer = _next_layer(layer)
            layers.append(layer)
        return cls(tuple(layers))

    @property
    def leaves(self) -> tuple[bytes, ...]:
        return self.layers[0]

    @property
    def root(self) -> bytes:
        return self.layers[-1][0]

    def proof(self, index: int) -> Proof:
        """Return the proof of the leaf at ``index``."""
        if not 0 <= index < len(self.leaves):
            raise MerkleError(f"leaf {index} is not in a tree of {len(self.leaves)} leaves")
        siblings = []
        for layer in self.layers[:-1]:
            sibling = index ^ 1
            if sibling < len(layer):  # an odd last node has none: it moved up unchanged
                siblings.append(layer[sibling])
            index //= 2
        return tuple(siblings)


def merkle_root(leaves: Iterable[bytes]) -> bytes:
    """Return the root of the tree over ``leaves``."""
    return MerkleTree.of(leaves).root


def verify_proof(proof: Iterable[bytes], root: bytes, leaf: bytes) -> bool:
    """Whether ``proof`` leads from ``leaf`` to ``root``."""
    node = bytes32("leaf", leaf)
    for sibling in proof:
        node = hash_pair(node, bytes32("sibling", sibling))
    return node == bytes32("root", root)


def _next_layer(nodes: Sequence[bytes]) -> tuple[bytes, ...]:
    paired = [hash_pair(nodes[i], nodes[i + 1]) for i in range(0, len(nodes) - 1, 2)]
    odd_last = nodes[len(nodes) & ~1 :]
    return (*paired, *odd_last)
