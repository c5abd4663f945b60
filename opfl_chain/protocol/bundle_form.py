"""Forms of bundles: kinds, sizes, and the public part, which has the leaf hashes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from opfl_chain.protocol.commitments import COMPONENTS, SEED_BYTES, SENT_AS_WORDS
from opfl_chain.protocol.delivery import MOST_PROOF_NODES, Expected
from opfl_chain.protocol.errors import BundleError
from opfl_chain.protocol.ring import RING_WORD_BYTES
from opfl_chain.protocol.sealing import KNOWLEDGE_BYTES, POINT_BYTES
from opfl_chain.protocol.shares import HASH_BYTES, SALT_BYTES

MAGIC: Final = b"OPFB"
VERSION: Final = 2
KEY_BYTES: Final = 32
ENVELOPES: Final = 2 * COMPONENTS

HEADER: Final = struct.Struct(">4sBBIQQQ")
"""Magic, version, kind, size of the public part, sizes of the three bodies."""


FIXED_SIZES: Final = (POINT_BYTES, KNOWLEDGE_BYTES, *[KEY_BYTES] * ENVELOPES)
"""The sizes of ephemeral key, proof of knowledge and envelopes, which follow the public part."""


class BundleKind(IntEnum):
    """The purpose of a bundle."""

    CONTRIBUTION = 1
    ANSWER = 2


@dataclass(frozen=True)
class Limits:
    """The sizes that a bundle may have, known before it arrives."""

    kind: BundleKind
    fewest_public: int
    most_public: int
    """Sizes of the public part: an answer has as many nodes as its data set is deep."""
    bodies: tuple[int, int, int]

    @classmethod
    def of(cls, kind: BundleKind, expected: Expected) -> Limits:
        """Return the sizes of a bundle for what a job expects. Its rank does not matter."""
        if kind is BundleKind.CONTRIBUTION:
            words = expected.package_words(expected.gradient_words)
            public = COMPONENTS * HASH_BYTES
            return cls(kind, public, public, component_sizes(words))
        sizes = component_sizes(expected.package_words(expected.input_words))
        public = 1 + HASH_BYTES * (COMPONENTS + _extra_leaves(expected))
        bodies = tuple(a + b for a, b in zip(sizes, extra_sizes(expected), strict=True))
        first, second, third = bodies
        return cls(kind, public, public + HASH_BYTES * MOST_PROOF_NODES, (first, second, third))

    @property
    def largest(self) -> int:
        """The maximum size of a bundle in bytes; readers may stop there."""
        return HEADER.size + HASH_BYTES + self.most_public + sum(FIXED_SIZES) + sum(self.bodies)


@dataclass(frozen=True)
class AnswerPublic:
    """The public part of an answer: the path, and the leaf hashes of input and advice or proof."""

    path: tuple[bytes, ...]
    leaves: tuple[bytes, bytes, bytes]
    extra: tuple[bytes, ...]

    @classmethod
    def decode(cls, data: bytes, expected: Expected) -> AnswerPublic:
        nodes = data[0] if data else 0
        extra = _extra_leaves(expected)
        size = 1 + HASH_BYTES * (nodes + COMPONENTS + extra)
        if nodes > MOST_PROOF_NODES or len(data) != size:
            raise BundleError(
                f"the public part of an answer has {len(data):,} bytes and a path of {nodes} nodes:"
                f" expected {size:,} bytes, and at most {MOST_PROOF_NODES} nodes"
            )
        hashes = [data[at : at + HASH_BYTES] for at in range(1, size, HASH_BYTES)]
        path, leaves = hashes[:nodes], hashes[nodes : nodes + COMPONENTS]
        return cls(tuple(path), three(leaves), tuple(hashes[nodes + COMPONENTS :]))


def gradient_leaves(public: bytes) -> tuple[bytes, bytes, bytes]:
    if len(public) != COMPONENTS * HASH_BYTES:
        raise BundleError(
            f"the public part of a contribution has {len(public):,} bytes, expected"
            f" {COMPONENTS} leaf hashes"
        )
    return three([public[at : at + HASH_BYTES] for at in range(0, len(public), HASH_BYTES)])


def three(hashes: Sequence[bytes]) -> tuple[bytes, bytes, bytes]:
    first, second, third = hashes
    return first, second, third


def component_sizes(words: int) -> tuple[int, int, int]:
    """Return the sizes of the three components of so many words, with their salts."""
    first, second, third = (
        SALT_BYTES + (RING_WORD_BYTES * words if k == SENT_AS_WORDS else SEED_BYTES)
        for k in range(COMPONENTS)
    )
    return first, second, third


def _extra_leaves(expected: Expected) -> int:
    if expected.proof is not None:
        return 2 + len(expected.proof.sizes)
    return COMPONENTS if expected.advice_words else 0


def extra_sizes(expected: Expected) -> tuple[int, int, int]:
    """Return the sizes of the three components of advice or proof."""
    if expected.proof is not None:
        first, second, third = (expected.proof.sent_size(k) for k in range(COMPONENTS))
        return first, second, third
    return component_sizes(expected.advice_words) if expected.advice_words else (0, 0, 0)
