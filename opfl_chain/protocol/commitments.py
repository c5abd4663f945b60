"""Commitments to gradients and inputs, in the schemes ``shares`` and ``mpc``.

In ``shares`` the ring words are split as x = x0 + x1 + x2 modulo 2^64 and each component is
committed to on its own, as it is sent, so that a member checks its shares without seeing the rest.
x0 and x1 are sent as seeds: hashing a seed binds as much as hashing all words that it expands into.
Shares are hashed with SHA-256: there are megabytes of them, and no contract reads them.

In ``mpc`` a salted tree is recomputed inside MPC. Every hash takes at most 135 bytes and thus one
Keccak permutation, and the hashes of a layer are independent of each other: inside MPC a layer
costs as many rounds as a single hash.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.hashing import TAG_GRADIENT, TAG_INPUT, TAG_SHARE, keccak256, sha256
from opfl_chain.protocol.ring import (
    RING_WORD_BYTES,
    Words,
    bytes_of_words,
    ring_words,
    words_of_bytes,
)
from opfl_chain.protocol.widths import bytes32, unsigned_bytes

COMPONENTS: Final = 3
SENT_AS_WORDS: Final = 2
"""The component that is sent as words. The others are sent as seeds."""
SEED_BYTES: Final = 32
WORDS_PER_LEAF: Final = 16
CHILDREN_PER_NODE: Final = 4
SALT_WORDS: Final = 4
BLOCK_BYTES: Final = 128
"""The input size of a leaf (sixteen words) and of a node (four hashes)."""


class Scheme(Enum):
    """The scheme by which a job commits to gradients and inputs, named in the policy."""

    SHARES = "shares"
    MPC = "mpc"


class Subject(Enum):
    """The subject of a commitment, tagged so that one kind cannot pass for the other."""

    GRADIENT = TAG_GRADIENT
    INPUT = TAG_INPUT

    @property
    def tag(self) -> bytes:
        """The domain tag."""
        return self.value


def share_hash(component_index: int, salt: bytes, sent: bytes) -> bytes:
    """Commit to one component under a secret salt: to its seed, or to its little-endian words."""
    if not 0 <= component_index < COMPONENTS:
        raise ProtocolError(f"component {component_index} does not exist, use 0, 1 or 2")
    if component_index != SENT_AS_WORDS:
        bytes32(f"seed of component {component_index}", sent)
    elif not sent or len(sent) % RING_WORD_BYTES:
        raise ProtocolError(
            f"component {component_index} has {len(sent)} bytes,"
            f" it must be one or more whole words of {RING_WORD_BYTES} bytes"
        )
    index = unsigned_bytes("component index", component_index, 8)
    return sha256(TAG_SHARE, index, bytes32("salt", salt), sent)


def shares_commitment(subject: Subject, share_hashes: Sequence[bytes]) -> bytes:
    """Commit to a gradient or an input by the hashes of its three components."""
    if len(share_hashes) != COMPONENTS:
        raise ProtocolError(f"a commitment has {COMPONENTS} share hashes, got {len(share_hashes)}")
    hashes = [bytes32(f"share hash {k}", value) for k, value in enumerate(share_hashes)]
    return keccak256(subject.tag, *hashes)


def tree_top(words: npt.NDArray[Any]) -> bytes:
    """Return the top hash of the tree over ``words``; a single leaf is its own top."""
    hashes = _hash_blocks(bytes_of_words("words", words))
    while len(hashes) > 1:
        hashes = _hash_blocks(b"".join(hashes))
    return hashes[0]


def tree_commitment(subject: Subject, salt: bytes, words: npt.NDArray[Any]) -> bytes:
    """Commit to ``words``. The 32-byte ``salt`` is random, secret and used once."""
    top = tree_top(words)
    return keccak256(subject.tag, bytes32("salt", salt), top, words.size.to_bytes(8, "little"))


def salted_words(words: npt.NDArray[Any], salt: bytes) -> Words:
    """Return the secret-shared vector of this scheme: the words, then the salt as four words."""
    salt_words = words_of_bytes("salt", bytes32("salt", salt))
    return np.concatenate([ring_words("words", words), salt_words])


def _hash_blocks(data: bytes) -> list[bytes]:
    padded = data + bytes(-len(data) % BLOCK_BYTES)
    return [keccak256(padded[at : at + BLOCK_BYTES]) for at in range(0, len(padded), BLOCK_BYTES)]
