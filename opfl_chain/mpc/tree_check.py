"""Gate 1 of scheme `mpc`: recompute the salted Keccak tree of a secret vector."""

from __future__ import annotations

import numpy as np

from opfl_chain.mpc.arithmetic import Held, join, to_boolean
from opfl_chain.mpc.boolean import BooleanCircuit, Shared, Words
from opfl_chain.mpc.keccak import DIGEST_WORDS, keccak_blocks
from opfl_chain.protocol.gradient_tree import CHILDREN_PER_NODE, SALT_WORDS, WORDS_PER_LEAF


def tree_faults(circuit: BooleanCircuit, tag: bytes, commitment: bytes, opening: Held) -> Shared:
    """Return words that are zero if the opening is that of the commitment.

    `opening` holds this member's two ring components of the committed words and, behind them, of
    the four words of the salt.
    """
    bits = to_boolean(circuit, *opening)
    count = bits.shape[0] - SALT_WORDS
    words, salt = bits[:count], bits[count:]
    top = _top(circuit, words)
    prefix = circuit.public(np.frombuffer(tag, np.uint64))
    length = circuit.public(np.array([count], np.uint64))
    message = join(prefix, salt, top, length)
    digest = keccak_blocks(circuit, message[:, None])[:, 0]
    return circuit.xor_public(digest, np.frombuffer(commitment, np.uint64))


def _top(circuit: BooleanCircuit, words: Shared) -> Shared:
    """Return the topmost hash over the words."""
    digests = keccak_blocks(circuit, _columns(words, WORDS_PER_LEAF))
    while digests.shape[1] > 1:
        flat = digests.local(lambda w: np.ascontiguousarray(w.T).reshape(-1))
        digests = keccak_blocks(circuit, _columns(flat, CHILDREN_PER_NODE * DIGEST_WORDS))
    return digests[:, 0]


def _columns(words: Shared, height: int) -> Shared:
    """Arrange words as messages of `height`, filled up with zeros."""

    def arrange(w: Words) -> Words:
        padded = np.zeros(-(-w.size // height) * height, np.uint64)
        padded[: w.size] = w
        return np.ascontiguousarray(padded.reshape(-1, height).T)

    return words.local(arrange)
