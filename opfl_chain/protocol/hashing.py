"""Keccak-256, SHA-256 for what is large, and the tags that keep their uses apart."""

import hashlib
from typing import Final

from eth_hash.auto import keccak


def keccak256(*parts: bytes) -> bytes:
    """Hash the concatenation of ``parts``."""
    return keccak(b"".join(parts))


def sha256(*parts: bytes) -> bytes:
    """Hash the concatenation of ``parts`` in a quarter of the time: processors know how."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.digest()


def double_keccak256(data: bytes) -> bytes:
    """Hash twice. Merkle leaves are made so, because no inner node can then pass for a leaf."""
    return keccak256(keccak256(data))


def tag(name: str) -> bytes:
    """Return the domain tag of one use of the hash."""
    return keccak256(b"opfl.v1.", name.encode("ascii"))


TAG_INPUT: Final = tag("input")
TAG_GRADIENT: Final = tag("gradient")
TAG_SHARE: Final = tag("share")
TAG_ROUND: Final = tag("round")
TAG_BEACON: Final = tag("beacon")
TAG_SEED: Final = tag("seed")
TAG_PROOF_OF_POSSESSION: Final = tag("proof-of-possession")
TAG_AGGREGATE: Final = tag("aggregate")
TAG_WEIGHTS: Final = tag("weights")
