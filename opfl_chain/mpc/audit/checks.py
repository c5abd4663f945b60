"""Checks inside MPC: a secret vector opens its commitment, and an input is well-formed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opfl_chain.circuits.arithmetic import Held, add_public, join, negative, to_boolean
from opfl_chain.circuits.boolean import BooleanCircuit, Shared, Words
from opfl_chain.circuits.keccak import DIGEST_WORDS, keccak_blocks
from opfl_chain.protocol.commitments import CHILDREN_PER_NODE, SALT_WORDS, WORDS_PER_LEAF
from opfl_chain.protocol.inputs import InputFormat

_SIGN = np.uint64(63)


def tree_faults(circuit: BooleanCircuit, tag: bytes, commitment: bytes, opening: Held) -> Shared:
    """Return words that are zero if the opening matches the commitment.

    `opening` holds this member's two ring components of the committed words, followed by those of
    the four salt words.
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
    """Arrange words as columns of `height` words, padded with zeros."""

    def arrange(w: Words) -> Words:
        padded = np.zeros(-(-w.size // height) * height, np.uint64)
        padded[: w.size] = w
        return np.ascontiguousarray(padded.reshape(-1, height).T)

    return words.local(arrange)


@dataclass(frozen=True)
class InputRules:
    """The parts of an input's format that are checked."""

    feature_words: int
    classes: int
    one: int
    lowest: int
    highest: int

    @classmethod
    def of(cls, form: InputFormat) -> InputRules:
        lowest, highest = form.feature_bounds
        return cls(form.feature_words, form.classes, 1 << form.fraction_bits, lowest, highest)


def input_faults(circuit: BooleanCircuit, rules: InputRules, words: Held) -> Shared:
    """Return words that are zero if the given words encode a valid input."""
    rank = circuit.rank
    features = words[0][: rules.feature_words], words[1][: rules.feature_words]
    targets = words[0][rules.feature_words :], words[1][rules.feature_words :]
    sums = tuple(part.reshape(-1, rules.classes).sum(1) for part in targets)
    summands = [
        add_public(rank, features, -rules.lowest),
        add_public(rank, negative(features), rules.highest),
        targets,
        sums,
    ]
    bits = to_boolean(circuit, *(np.concatenate(part) for part in zip(*summands, strict=True)))
    in_range, one_hot = bits[: 2 * rules.feature_words], bits[2 * rules.feature_words :]
    count = targets[0].size
    one = np.uint64(rules.one)
    return join(
        in_range.local(lambda w: w >> _SIGN),
        one_hot[:count].masked(~one),
        circuit.xor_public(one_hot[count:], one),
    )
