"""Replicated secret shares of ring words, and the package in which a member receives its own.

x = x0 + x1 + x2 modulo 2^64, where x0 and x1 are expanded from seeds. Member r holds components r
and r + 1 modulo 3, so that only x2 travels as words, to members 1 and 2.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from opfl_chain.protocol.commitments import (
    COMPONENTS,
    SEED_BYTES,
    SENT_AS_WORDS,
    Scheme,
    Subject,
    salted_words,
    share_hash,
    shares_commitment,
    tree_commitment,
)
from opfl_chain.protocol.errors import CommitmentMismatch, ComponentMismatch, ShareError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.ring import RING_WORD_BYTES, UnsignedWords, Words, unsigned_words
from opfl_chain.protocol.widths import bytes32

SALT_BYTES: Final = 32
HASH_BYTES: Final = 32
PACKAGE_MAGIC: Final = b"OPFS"
PACKAGE_VERSION: Final = 1
SCHEME_CODES: Final = {Scheme.SHARES: 1, Scheme.MPC: 2}

_BLOCK_BYTES: Final = 16
_HEADER: Final = struct.Struct(">4sBBBQ")
"""Magic, version, scheme, rank, count."""
_SEEDS: Final = (b"seed 0", b"seed 1")
_SALTS: Final = tuple(b"salt %d" % k for k in range(COMPONENTS))
_TREE_SALT: Final = b"tree salt"
_ADVICE: Final = b"advice"


def key_stream(key: bytes, size: int, first_block: int = 0) -> bytes:
    """Return ``size`` bytes of AES-256 in counter mode, from counter block ``first_block``."""
    counter = modes.CTR(first_block.to_bytes(_BLOCK_BYTES, "big"))
    return Cipher(algorithms.AES(bytes32("key", key)), counter).encryptor().update(_zeros(size))


@lru_cache(maxsize=4)
def _zeros(size: int) -> bytes:
    """Cached, because allocating them takes as long as encrypting them."""
    return bytes(size)


def expand(seed: bytes, count: int) -> UnsignedWords:
    """Expand a seed into ``count`` words. A seed is random, secret and used once."""
    if count < 1:
        raise ShareError(f"a seed must expand into one or more words, not {count}")
    return np.frombuffer(key_stream(bytes32("seed", seed), RING_WORD_BYTES * count), dtype="<u8")


def held_indices(rank: int) -> tuple[int, int]:
    """Return the indices of the components of member ``rank``, in the order of receipt."""
    if not 0 <= rank < COMPONENTS:
        raise ShareError(f"rank is {rank}, members have ranks 0, 1 and 2")
    return rank, (rank + 1) % COMPONENTS


def holders_of(index: int) -> tuple[int, int]:
    """Return the ranks of the two members that hold a component, in order."""
    first, second = sorted(rank for rank in range(COMPONENTS) if index in held_indices(rank))
    return first, second


@dataclass(frozen=True)
class Component:
    """One component as it is sent: the last as words, the others as seeds."""

    index: int
    salt: bytes = field(repr=False)
    sent: bytes = field(repr=False)

    def words(self, count: int) -> UnsignedWords:
        """Return the ``count`` words of the component."""
        if self.index == SENT_AS_WORDS:
            return np.frombuffer(self.sent, dtype="<u8")
        return expand(self.sent, count)

    @property
    def leaf_hash(self) -> bytes:
        """The commitment to the component."""
        return share_hash(self.index, self.salt, self.sent)


@dataclass(frozen=True)
class SharePackage:
    """The shares for one member. Make one with :meth:`SharedVector.packages`.

    The hash of the component that the member does not hold lets it recompute the commitment.
    """

    scheme: Scheme
    rank: int
    count: int
    leaf_hashes: tuple[bytes, bytes, bytes]
    held: tuple[Component, Component]

    def __post_init__(self) -> None:
        if not 1 <= self.count < 1 << 64:
            raise ShareError(f"count is {self.count}, it must be in [1, 2^64)")
        if len(self.leaf_hashes) != COMPONENTS:
            raise ShareError(f"expected {COMPONENTS} leaf hashes, got {len(self.leaf_hashes)}")
        for k, leaf in enumerate(self.leaf_hashes):
            _check_size(f"leaf hash {k}", leaf, HASH_BYTES)
        if tuple(component.index for component in self.held) != held_indices(self.rank):
            indices = " and ".join(str(component.index) for component in self.held)
            expected = " and ".join(map(str, held_indices(self.rank)))
            raise ShareError(f"member {self.rank} holds components {expected}, not {indices}")
        for component in self.held:
            _check_size(f"salt of component {component.index}", component.salt, SALT_BYTES)
            size = _sent_size(component.index, self.count)
            _check_size(_sent_name(component.index), component.sent, size)

    def encode(self) -> bytes:
        """Return the wire format."""
        header = _HEADER.pack(
            PACKAGE_MAGIC, PACKAGE_VERSION, SCHEME_CODES[self.scheme], self.rank, self.count
        )
        components = (piece for part in self.held for piece in (part.salt, part.sent))
        return b"".join([header, *self.leaf_hashes, *components])

    @classmethod
    def decode(cls, data: bytes, scheme: Scheme, rank: int, count: int) -> "SharePackage":
        """Read a package of ``scheme`` with ``count`` words, sent to member ``rank``.

        All three are known before it arrives, so a package that claims otherwise is refused before
        anything of the claimed size is allocated.
        """
        reader = _Reader(data)
        header = reader.take(_HEADER.size, "the header")
        magic, version, scheme_code, package_rank, package_count = _HEADER.unpack(header)
        if magic != PACKAGE_MAGIC:
            raise ShareError(f"not a share package: it starts with {magic!r}")
        if version != PACKAGE_VERSION:
            raise ShareError(f"package has version {version}, expected {PACKAGE_VERSION}")
        if scheme_code not in SCHEME_CODES.values():
            raise ShareError(f"package has unknown scheme {scheme_code}")
        if scheme_code != SCHEME_CODES[scheme]:
            raise ShareError(f"package has scheme {scheme_code}, expected {scheme.value}")
        if package_rank != rank:
            raise ShareError(f"package is for member {package_rank}, expected {rank}")
        if package_count != count:
            raise ShareError(f"package has {package_count:,} words, expected {count:,}")
        h0, h1, h2 = (reader.take(HASH_BYTES, f"leaf hash {k}") for k in range(COMPONENTS))
        first, second = (_take_component(reader, k, count) for k in held_indices(rank))
        reader.finish()
        return cls(scheme, rank, count, (h0, h1, h2), (first, second))


@dataclass(frozen=True, eq=False)
class SharedVector:
    """Ring words and their three components. Make one with :meth:`split`."""

    components: tuple[UnsignedWords, UnsignedWords, UnsignedWords]
    seeds: tuple[bytes, bytes] = field(repr=False)

    @classmethod
    def split(cls, words: npt.NDArray[Any], seed0: bytes, seed1: bytes) -> "SharedVector":
        """Share ``words``. The seeds are random, different, secret and used once."""
        if seed0 == seed1:
            raise ShareError("the two seeds are equal: x1 would be x0")
        x = unsigned_words("words", words)
        x0, x1 = expand(seed0, x.size), expand(seed1, x.size)
        x2 = x - x0
        x2 -= x1
        return cls((x0, x1, x2), (seed0, seed1))

    @property
    def count(self) -> int:
        """The number of shared words."""
        return self.components[0].size

    def reconstruct(self) -> Words:
        """Return the words."""
        x0, x1, x2 = self.components
        return (x0 + x1 + x2).view("<i8")

    def held_by(self, rank: int) -> tuple[UnsignedWords, UnsignedWords]:
        """Return the two components of member ``rank``."""
        first, second = held_indices(rank)
        return self.components[first], self.components[second]

    def packages(
        self, scheme: Scheme, salts: Sequence[bytes]
    ) -> tuple[SharePackage, SharePackage, SharePackage]:
        """Return the package of each member, by rank, each component under its salt."""
        if len(salts) != COMPONENTS:
            raise ShareError(f"expected {COMPONENTS} salts, got {len(salts)}")
        sent = (*self.seeds, self.components[SENT_AS_WORDS].tobytes())
        parts = [Component(k, salts[k], sent[k]) for k in range(COMPONENTS)]
        h0, h1, h2 = (part.leaf_hash for part in parts)
        p0, p1, p2 = (
            SharePackage(scheme, rank, self.count, (h0, h1, h2), (parts[first], parts[second]))
            for rank in range(COMPONENTS)
            for first, second in [held_indices(rank)]
        )
        return p0, p1, p2


def components_of(packages: Sequence[SharePackage]) -> list[UnsignedWords]:
    """Return all three components of a vector, from the packages of all members."""
    parts = {part.index: part.words(each.count) for each in packages for part in each.held}
    return [parts[index] for index in range(COMPONENTS)]


def verify_package(
    package: SharePackage, subject: Subject, commitment: bytes
) -> tuple[UnsignedWords, UnsignedWords]:
    """Return the components of a package that opens ``commitment`` in the scheme ``shares``."""
    if package.scheme is not Scheme.SHARES:
        raise ShareError(
            f"package has scheme {package.scheme.value}, whose commitment is checked inside MPC"
        )
    if shares_commitment(subject, package.leaf_hashes) != bytes32("commitment", commitment):
        raise CommitmentMismatch(
            f"leaf hashes do not match the {subject.name.lower()} commitment 0x{commitment.hex()}"
        )
    return verify_components(package)


def verify_components(package: SharePackage) -> tuple[UnsignedWords, UnsignedWords]:
    """Return the components of a package that match their leaf hashes, in either scheme.

    In the scheme ``mpc`` members must compare the leaf hashes with each other: no commitment binds
    them, and the two holders of a component could have been sent different copies.
    """
    first, second = (_verified_words(package, component) for component in package.held)
    return first, second


def _verified_words(package: SharePackage, component: Component) -> UnsignedWords:
    actual, expected = component.leaf_hash, package.leaf_hashes[component.index]
    if actual != expected:
        raise ComponentMismatch(
            f"component {component.index} does not match its leaf:"
            f" it hashes to 0x{actual.hex()}, the leaf is 0x{expected.hex()}"
        )
    return component.words(package.count)


class _Reader:
    """Reads pieces of exact size from the front of a package."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int, what: str) -> bytes:
        left = len(self._data) - self._at
        if size > left:
            raise ShareError(
                f"package of {len(self._data):,} bytes is truncated in {what}:"
                f" {size:,} bytes are needed, {left:,} are left"
            )
        piece = bytes(self._data[self._at : self._at + size])
        self._at += size
        return piece

    def finish(self) -> None:
        if left := len(self._data) - self._at:
            raise ShareError(f"package has {left:,} bytes after its end")


def _take_component(reader: _Reader, index: int, count: int) -> Component:
    salt = reader.take(SALT_BYTES, f"the salt of component {index}")
    sent = reader.take(_sent_size(index, count), f"the {_sent_name(index)}")
    return Component(index, salt, sent)


def _sent_size(index: int, count: int) -> int:
    return RING_WORD_BYTES * count if index == SENT_AS_WORDS else SEED_BYTES


def _sent_name(index: int) -> str:
    return f"{'words' if index == SENT_AS_WORDS else 'seed'} of component {index}"


def _check_size(name: str, value: bytes, size: int) -> None:
    if len(value) != size:
        raise ShareError(f"{name} has {len(value):,} bytes, it must have {size:,}")


@dataclass(frozen=True)
class Committed:
    """A commitment, and the share package of each member, by rank."""

    commitment: bytes
    packages: tuple[SharePackage, SharePackage, SharePackage] = field(repr=False)


def commit(scheme: Scheme, subject: Subject, words: npt.NDArray[Any], entropy: bytes) -> Committed:
    """Commit to ``words`` and share them.

    All seeds and salts are derived from 32 bytes of ``entropy``, which are random, secret and used
    once. The same entropy yields the same packages again.
    """
    if scheme is Scheme.MPC:
        salt = _derived(entropy, subject.tag, _TREE_SALT)
        commitment = tree_commitment(subject, salt, words)
        packages = _share(scheme, subject.tag, salted_words(words, salt), entropy)
        return Committed(commitment, packages)
    packages = _share(scheme, subject.tag, words, entropy)
    return Committed(shares_commitment(subject, packages[0].leaf_hashes), packages)


def share_advice(
    scheme: Scheme, words: npt.NDArray[Any], entropy: bytes
) -> tuple[SharePackage, SharePackage, SharePackage]:
    """Share advice, without a commitment. The entropy may be that of the input."""
    return _share(scheme, _ADVICE, words, entropy)


def _share(
    scheme: Scheme, purpose: bytes, words: npt.NDArray[Any], entropy: bytes
) -> tuple[SharePackage, SharePackage, SharePackage]:
    seed0, seed1 = (_derived(entropy, purpose, label) for label in _SEEDS)
    salts = [_derived(entropy, purpose, label) for label in _SALTS]
    return SharedVector.split(words, seed0, seed1).packages(scheme, salts)


def _derived(entropy: bytes, purpose: bytes, label: bytes) -> bytes:
    return keccak256(bytes32("entropy", entropy), purpose, label)
