"""The boolean half of ABY3, natively: replicated sharing of 64-bit words under exclusive or.

A secret word is w = w0 ^ w1 ^ w2, and member r holds w_r and w_{r+1}. Whatever is linear (exclusive
or, shifts, masks, permutations of words or bits) each member does to its own two components. A
conjunction takes one message to the member before (Araki et al. 2016, the protocol that ABY3 uses);
what is sent is masked by fresh randomness of which the receiver knows nothing.

SPU has the same protocol, but spends 0.2 ms to dispatch an operation and 50 ns on every word of it,
which is most of the cost of comparing and hashing. Here both are as fast as numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from Crypto.Cipher import AES
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_SEED_BYTES = 32


class Transport(Protocol):
    """Ordered, reliable messages between the three members."""

    rank: int

    def send(self, rank: int, data: bytes) -> None: ...

    def receive(self, rank: int) -> bytes: ...


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
        """Keep the bits of a public mask."""
        return Shared(self.own & mask, self.following & mask)


class BooleanCircuit:
    """One member's side of a computation on shared words. All members make the same calls."""

    def __init__(self, transport: Transport, seed: bytes) -> None:
        """`seed` is this member's fresh secret; the member before learns it, the other does not."""
        self._transport = transport
        self.rank = transport.rank
        self._before, self._after = (self.rank - 1) % 3, (self.rank + 1) % 3
        transport.send(self._before, seed)
        received = transport.receive(self._after)
        if len(received) != _SEED_BYTES:
            raise ValueError(f"member {self._after} sent a seed of {len(received)} bytes")
        self._streams = (_stream(seed), _stream(received))
        self.conjunctions = 0
        self.rounds = 0

    def known_to_holders(self, component: int, words: Words) -> Shared:
        """Share what the two holders of a component know; the other member passes anything."""
        zero = np.zeros_like(words)
        own = words if component == self.rank else zero
        following = words if component == self._after else zero
        return Shared(own, following)

    def public(self, words: Words) -> Shared:
        """Share what everyone knows."""
        return self.known_to_holders(0, words)

    def xor_public(self, shared: Shared, public: Words | np.uint64) -> Shared:
        """Add a public value: only one of the components changes."""
        own = shared.own ^ public if self.rank == 0 else shared.own
        following = shared.following ^ public if self._after == 0 else shared.following
        return Shared(own, following)

    def invert(self, shared: Shared) -> Shared:
        return self.xor_public(shared, np.uint64(0xFFFFFFFFFFFFFFFF))

    def conjunction(self, left: Shared, right: Shared) -> Shared:
        """Return left & right, word by word."""
        own: Words = (left.own & (right.own ^ right.following)) ^ (left.following & right.own)
        own ^= self._zero_share(own.shape)
        self._transport.send(self._before, own.tobytes())
        following = np.frombuffer(self._transport.receive(self._after), np.uint64)
        if following.size != own.size:
            raise ValueError(
                f"member {self._after} sent {following.size} words instead of {own.size}"
            )
        self.conjunctions += own.size
        self.rounds += 1
        return Shared(own, following.reshape(own.shape))

    def open(self, shared: Shared) -> Words:
        """Reveal to all members."""
        self._transport.send(self._after, shared.own.tobytes())
        missing = np.frombuffer(self._transport.receive(self._before), np.uint64)
        return shared.own ^ shared.following ^ missing.reshape(shared.shape)

    def _zero_share(self, shape: tuple[int, ...]) -> Words:
        """Words of which the three members' add up to zero."""
        count = int(np.prod(shape))
        mine, theirs = (stream(8 * count) for stream in self._streams)
        words = np.frombuffer(mine, np.uint64) ^ np.frombuffer(theirs, np.uint64)
        return words.reshape(shape)


def _stream(seed: bytes) -> Callable[[int], bytes]:
    cipher = AES.new(seed, AES.MODE_CTR, nonce=b"", initial_value=0)
    return lambda count: cipher.encrypt(bytes(count))
