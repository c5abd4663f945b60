"""The boolean half of ABY3 in numpy: replicated sharing of 64-bit words under exclusive or.

A secret word is w = w0 ^ w1 ^ w2, and member r holds w_r and w_{r+1}. Linear operations (exclusive
or, shifts, masks, permutations of words or bits) are local: each member applies them to its own two
components. A conjunction takes one message to the member before (Araki et al. 2016, the protocol
that ABY3 uses), masked by fresh randomness that the receiver does not know.

SPU has the same protocol, but spends 0.2 ms to dispatch an operation and 50 ns on every word of it,
which is most of the cost of comparing and hashing. Here both are as fast as numpy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_SEED_BYTES = 32


class Transport(Protocol):
    """Ordered, reliable messages between the three members."""

    rank: int

    def send(self, rank: int, data: bytes) -> None: ...

    def receive(self, rank: int) -> bytes: ...

    def invalid(self, rank: int, reason: str) -> Exception:
        """Return the error to raise for an invalid message of this member."""


@dataclass(frozen=True)
class Shared:
    """One member's two components of an array of secret words."""

    own: Words
    following: Words

    @property
    def shape(self) -> tuple[int, ...]:
        return self.own.shape

    def local(self, function: Callable[[Words], Words]) -> Shared:
        """Apply a function that is linear under exclusive or."""
        return Shared(function(self.own), function(self.following))

    def __xor__(self, other: Shared) -> Shared:
        return Shared(self.own ^ other.own, self.following ^ other.following)

    def __getitem__(self, index: Any) -> Shared:
        return Shared(self.own[index], self.following[index])

    def masked(self, mask: Words | np.uint64) -> Shared:
        """Keep only the bits that are set in a public mask."""
        return Shared(self.own & mask, self.following & mask)


class BooleanCircuit:
    """One member's side of a computation on shared words. All members make the same calls."""

    def __init__(self, transport: Transport, seed: bytes) -> None:
        """`seed` is this member's fresh secret. Only the member before learns it."""
        self._transport = transport
        self.rank = transport.rank
        self._before, self._after = (self.rank - 1) % 3, (self.rank + 1) % 3
        transport.send(self._before, seed)
        received = transport.receive(self._after)
        if len(received) != _SEED_BYTES:
            reason = f"a seed of {len(received)} bytes instead of {_SEED_BYTES}"
            raise transport.invalid(self._after, reason)
        self._streams = (_stream(seed), _stream(received))

    def known_to_holders(self, component: int, words: Words) -> Shared:
        """Share words that both holders of a component know; the third member's are ignored."""
        zero = np.zeros_like(words)
        own = words if component == self.rank else zero
        following = words if component == self._after else zero
        return Shared(own, following)

    def public(self, words: Words) -> Shared:
        """Share public words."""
        return self.known_to_holders(0, words)

    def xor_public(self, shared: Shared, public: Words | np.uint64) -> Shared:
        """Return shared ^ public; only one of the components changes."""
        own = shared.own ^ public if self.rank == 0 else shared.own
        following = shared.following ^ public if self._after == 0 else shared.following
        return Shared(own, following)

    def invert(self, shared: Shared) -> Shared:
        return self.xor_public(shared, np.uint64(0xFFFFFFFFFFFFFFFF))

    def conjunction(self, left: Shared, right: Shared) -> Shared:
        """Return left & right, word by word."""
        own: Words = (left.own & (right.own ^ right.following)) ^ (left.following & right.own)
        # Encryption in counter mode is an exclusive or with the key stream.
        mine, theirs = self._streams
        return self._reshared(theirs(mine(own.reshape(-1).view(np.uint8))), own.shape)

    def product(self, left: Shared, right: Shared) -> Shared:
        """Return left * right for additive shares modulo 2^64, as an additive share."""
        own: Words = left.own * (right.own + right.following) + left.following * right.own
        mine, theirs = self._masks(own.shape)
        own += mine - theirs
        return self._reshared(own.tobytes(), own.shape)

    def open(self, shared: Shared) -> Words:
        """Reveal to all members."""
        self._transport.send(self._after, shared.own.tobytes())
        missing = self._receive(self._before, shared.shape)
        return shared.own ^ shared.following ^ missing

    def _receive(self, rank: int, shape: tuple[int, ...]) -> Words:
        data = self._transport.receive(rank)
        size = 8 * math.prod(shape)
        if len(data) != size:
            raise self._transport.invalid(rank, f"{len(data)} bytes instead of {size}")
        return np.frombuffer(data, np.uint64).reshape(shape)

    def _reshared(self, own: bytes, shape: tuple[int, ...]) -> Shared:
        """Complete a share of which each member has computed one component."""
        self._transport.send(self._before, own)
        following = self._receive(self._after, shape)
        return Shared(np.frombuffer(own, np.uint64).reshape(shape), following)

    def _masks(self, shape: tuple[int, ...]) -> tuple[Words, Words]:
        """Return fresh random words: ours and those of the member after.

        Two members know each of them, so the three members' differences add up to zero, and their
        exclusive ors cancel.
        """
        nothing = bytes(8 * math.prod(shape))
        mine, theirs = (np.frombuffer(stream(nothing), np.uint64) for stream in self._streams)
        return mine.reshape(shape), theirs.reshape(shape)


def _stream(seed: bytes) -> Callable[[Any], bytes]:
    """Return a function that encrypts with the next bytes of a seed's key stream."""
    return Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor().update
