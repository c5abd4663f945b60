"""Commitments of the scheme ``mpc``: a salted tree that the committee recomputes inside MPC.

Every hash is of at most 135 bytes and so one Keccak permutation, and all hashes of one layer are
independent of each other: inside MPC a layer costs as many rounds as a single hash.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opfl_chain.protocol.gradient import Subject
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.ring import Words, bytes_of_words, ring_words, words_of_bytes
from opfl_chain.protocol.widths import bytes32

WORDS_PER_LEAF: Final = 16
CHILDREN_PER_NODE: Final = 4
SALT_WORDS: Final = 4
BLOCK_BYTES: Final = 128
"""What a leaf and a node hash: sixteen words, or four hashes."""


def tree_top(words: npt.NDArray[Any]) -> bytes:
    """Return the hash at the top of the tree over ``words``; of one leaf it is the leaf."""
    hashes = _hash_blocks(bytes_of_words("words", words))
    while len(hashes) > 1:
        hashes = _hash_blocks(b"".join(hashes))
    return hashes[0]


def tree_commitment(subject: Subject, salt: bytes, words: npt.NDArray[Any]) -> bytes:
    """Commit to ``words``. The 32-byte ``salt`` is random, secret and used once."""
    top = tree_top(words)
    return keccak256(subject.tag, bytes32("salt", salt), top, words.size.to_bytes(8, "little"))


def salted_words(words: npt.NDArray[Any], salt: bytes) -> Words:
    """Return what is secret-shared in this scheme: the words, then the salt as four words."""
    salt_words = words_of_bytes("salt", bytes32("salt", salt))
    return np.concatenate([ring_words("words", words), salt_words])


def _hash_blocks(data: bytes) -> list[bytes]:
    padded = data + bytes(-len(data) % BLOCK_BYTES)
    return [keccak256(padded[at : at + BLOCK_BYTES]) for at in range(0, len(padded), BLOCK_BYTES)]
