"""Hashes with tags that keep their uses apart, and Merkle trees with sorted pairs.

OpenZeppelin's ``MerkleProof`` verifies the proofs on chain.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from eth_hash.auto import keccak

from opfl_chain.protocol.errors import MerkleError
from opfl_chain.protocol.widths import bytes32

Proof = tuple[bytes, ...]
"""The siblings from a leaf up to the root."""


def keccak256(*parts: bytes) -> bytes:
    """Hash the concatenation of ``parts``."""
    return keccak(b"".join(parts))


def sha256(*parts: bytes) -> bytes:
    """Hash the concatenation of ``parts``: four times as fast, with processor support."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.digest()


def double_keccak256(data: bytes) -> bytes:
    """Hash twice, as Merkle leaves are, so that no inner node can pass for a leaf."""
    return keccak256(keccak256(data))


def tag(name: str) -> bytes:
    """Return the domain tag of one use of the hash."""
    return keccak256(b"opfl.v2.", name.encode("ascii"))


TAG_INPUT: Final = tag("input")
TAG_GRADIENT: Final = tag("gradient")
TAG_SHARE: Final = tag("share")
TAG_ROUND: Final = tag("round")
TAG_BEACON: Final = tag("beacon")
TAG_SEED: Final = tag("seed")
TAG_PROOF_OF_POSSESSION: Final = tag("proof-of-possession")
TAG_AGGREGATE: Final = tag("aggregate")
TAG_WEIGHTS: Final = tag("weights")
TAG_PROOF: Final = tag("proof")
TAG_PROOF_TRANSCRIPT: Final = tag("proof-transcript")
TAG_PROOF_CONTEXT: Final = tag("proof-context")
TAG_PROOF_ANSWERS: Final = tag("proof-answers")
TAG_BUNDLE: Final = tag("bundle")
TAG_BODY_KEY: Final = tag("body-key")
TAG_SEALING_SECRET: Final = tag("sealing-secret")
TAG_KNOWLEDGE: Final = tag("knowledge")
TAG_SAME_SECRET: Final = tag("same-secret")
TAG_ENVELOPE: Final = tag("envelope")


def hash_pair(left: bytes, right: bytes) -> bytes:
    """Hash two nodes, smaller first, so that a proof needs no directions."""
    return keccak256(left, right) if left <= right else keccak256(right, left)


@dataclass(frozen=True)
class MerkleTree:
    """All layers of a tree, from the leaves to the root. Make one with :meth:`of`.

    A proof shows that a leaf is in the tree, not where: a leaf must bind everything that matters.
    """

    layers: tuple[tuple[bytes, ...], ...]

    @classmethod
    def of(cls, leaves: Iterable[bytes]) -> "MerkleTree":
        """Build the tree over ``leaves`` in the order given."""
        layer = tuple(bytes32(f"leaf {i}", leaf) for i, leaf in enumerate(leaves))
        if not layer:
            raise MerkleError("a Merkle tree needs at least one leaf, got none")
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
    """Return whether ``proof`` leads from ``leaf`` to ``root``."""
    node = bytes32("leaf", leaf)
    for sibling in proof:
        node = hash_pair(node, bytes32("sibling", sibling))
    return node == bytes32("root", root)


def _next_layer(nodes: Sequence[bytes]) -> tuple[bytes, ...]:
    paired = [hash_pair(nodes[i], nodes[i + 1]) for i in range(0, len(nodes) - 1, 2)]
    odd_last = nodes[len(nodes) & ~1 :]
    return (*paired, *odd_last)
