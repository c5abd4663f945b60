"""The roll of a round: who contributed, agreed by the members and committed to on chain."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from opfl_chain.protocol import abi, statements
from opfl_chain.protocol.errors import MessageError, RollError
from opfl_chain.protocol.hashing import (
    TAG_ROUND,
    MerkleTree,
    Proof,
    double_keccak256,
    keccak256,
)
from opfl_chain.protocol.identifiers import Address, ClientIndex, JobId, RoundNumber
from opfl_chain.protocol.sealing import COMPLAINT_BYTES, Complaint
from opfl_chain.protocol.shares import HASH_BYTES
from opfl_chain.protocol.widths import bytes32, unsigned, unsigned_bytes

PAIR_BYTES: Final = 4 + HASH_BYTES
LISTS_NEEDED: Final = 2
"""A bundle that so many members list is one that an honest member has."""

_HEADER: Final = struct.Struct(">4sBI")
"""Magic, version, number of rows."""
_LIST_MAGIC: Final = b"OPFL"
_COMPLAINTS_MAGIC: Final = b"OPFC"
_VERSION: Final = 2
_PAIR: Final = struct.Struct(f">I{HASH_BYTES}s")
_COMPLAINT_ROW: Final = struct.Struct(f">I{HASH_BYTES}s{COMPLAINT_BYTES}s")


def opening_of(
    chain_id: int,
    rounds: Address,
    job: JobId,
    round_: RoundNumber,
    model_hash: bytes,
    previous_block: bytes,
) -> bytes:
    """Return the opening of a round, which differs whenever it is opened again on another chain."""
    return keccak256(
        abi.abi_encode(
            abi.word("tag", TAG_ROUND),
            abi.uint("chain id", chain_id, 256),
            abi.address("rounds", rounds),
            abi.job_id(job),
            abi.round_number(round_),
            abi.word("model hash", model_hash),
            abi.word("hash of the block before", previous_block),
        )
    )


@dataclass(frozen=True)
class Listed:
    """The bundles that a member has: for each client the content hash, the smallest of several."""

    hashes: Mapping[ClientIndex, bytes]

    def encode(self) -> bytes:
        """Return the wire format, in the order of clients."""
        rows = (
            _PAIR.pack(unsigned("client index", client, 32), bytes32("content hash", found))
            for client, found in sorted(self.hashes.items())
        )
        return b"".join([_HEADER.pack(_LIST_MAGIC, _VERSION, len(self.hashes)), *rows])

    @classmethod
    def decode(cls, data: bytes, most: int) -> Listed:
        """Read a list of at most so many clients."""
        rows = list(_PAIR.iter_unpack(_rows(data, _LIST_MAGIC, _PAIR.size, most)))
        _check_order("list", [client for client, _ in rows])
        return cls({ClientIndex(client): found for client, found in rows})


def candidates(lists: Iterable[Listed]) -> dict[ClientIndex, bytes]:
    """Return the bundles that two lists name, by client; of several the smallest content hash."""
    named = Counter(pair for each in lists for pair in each.hashes.items())
    found: dict[ClientIndex, bytes] = {}
    for client, content in sorted(named):
        if named[client, content] >= LISTS_NEEDED:
            found.setdefault(client, content)
    return found


@dataclass(frozen=True)
class Complaints:
    """A member's complaints about bundles: the content hash and the complaint, by client."""

    filed: Mapping[ClientIndex, tuple[bytes, Complaint]]

    def encode(self) -> bytes:
        """Return the wire format, in the order of clients."""
        rows = (
            _COMPLAINT_ROW.pack(client, bytes32("content hash", content), complaint.encode())
            for client, (content, complaint) in sorted(self.filed.items())
        )
        return b"".join([_HEADER.pack(_COMPLAINTS_MAGIC, _VERSION, len(self.filed)), *rows])

    @classmethod
    def decode(cls, data: bytes, seat: int, most: int) -> Complaints:
        """Read at most so many complaints of the member in a seat."""
        body = _rows(data, _COMPLAINTS_MAGIC, _COMPLAINT_ROW.size, most)
        filed: dict[ClientIndex, tuple[bytes, Complaint]] = {}
        order: list[int] = []
        for client, content, complaint in _COMPLAINT_ROW.iter_unpack(body):
            read = Complaint.decode(complaint)
            if read.seat != seat:
                raise MessageError(f"member {seat} complains in the name of member {read.seat}")
            order.append(client)
            filed[ClientIndex(client)] = content, read
        _check_order("complaints", order)
        return cls(filed)


def exclude(
    candidates: Mapping[ClientIndex, bytes], complaints: Iterable[tuple[ClientIndex, bytes]]
) -> dict[ClientIndex, bytes]:
    """Drop the candidates about which a complaint stands, given as client and content hash."""
    standing = set(complaints)
    return {
        client: content
        for client, content in candidates.items()
        if (client, content) not in standing
    }


@dataclass(frozen=True)
class RollEntry:
    """One contribution on the roll."""

    client: ClientIndex
    address: Address
    commitment: bytes
    content_hash: bytes

    @property
    def leaf(self) -> bytes:
        """The leaf in the tree of the roll."""
        return roll_leaf(self.address, self.content_hash)

    @property
    def pair(self) -> bytes:
        """The client's index and its commitment, as they go on chain."""
        index = unsigned_bytes("client index", self.client, 32)
        return index + bytes32("commitment", self.commitment)


@dataclass(frozen=True)
class Roll:
    """The contributions of a round, in the order of client indices."""

    entries: tuple[RollEntry, ...]
    is_public: bool = True
    """True if the pairs go on chain, not the root over them alone: a term of the job."""

    def __post_init__(self) -> None:
        if not self.entries:
            raise RollError("a roll has at least one contribution")
        _check_order("roll", [entry.client for entry in self.entries], RollError)

    @classmethod
    def of(cls, entries: Iterable[RollEntry], is_public: bool = True) -> Roll:
        """Make a roll from its entries in any order."""
        return cls(tuple(sorted(entries, key=lambda entry: entry.client)), is_public)

    @cached_property
    def tree(self) -> MerkleTree:
        """The tree over all entries."""
        return MerkleTree.of(entry.leaf for entry in self.entries)

    @property
    def root(self) -> bytes:
        """The root that the chain has."""
        return self.tree.root

    @property
    def count(self) -> int:
        """The number of contributions."""
        return len(self.entries)

    @property
    def pairs(self) -> bytes:
        """The pairs of client and commitment that go on chain."""
        return b"".join(entry.pair for entry in self.entries) if self.is_public else b""

    @property
    def pairs_hash(self) -> bytes:
        """The hash of the pairs, which members sign."""
        return keccak256(self.pairs)

    def proof(self, client: ClientIndex) -> Proof:
        """Return the path of a client's entry to the root."""
        for place, entry in enumerate(self.entries):
            if entry.client == client:
                return self.tree.proof(place)
        raise RollError(f"client {client} is not on the roll")

    def statement(self, job: JobId, round_: RoundNumber, opening: bytes) -> statements.Roll:
        """Return the statement that members sign."""
        return statements.Roll(job, round_, opening, self.root, self.count, self.pairs_hash)


def roll_leaf(client: Address, content_hash: bytes) -> bytes:
    """Return the leaf of a contribution."""
    return double_keccak256(
        abi.abi_encode(abi.address("client", client), abi.word("content hash", content_hash))
    )


def decode_pairs(data: bytes) -> list[tuple[ClientIndex, bytes]]:
    """Read the pairs of client and commitment that a roll has on chain."""
    if len(data) % PAIR_BYTES:
        raise RollError(f"the pairs have {len(data):,} bytes, not a multiple of {PAIR_BYTES}")
    pairs = [(ClientIndex(client), found) for client, found in _PAIR.iter_unpack(data)]
    _check_order("pairs", [client for client, _ in pairs], RollError)
    return pairs


def _rows(data: bytes, magic: bytes, size: int, most: int) -> bytes:
    """Return the rows of a message, of which there are at most so many."""
    if len(data) < _HEADER.size:
        raise MessageError(f"the message has {len(data)} bytes, at least {_HEADER.size} expected")
    found, version, count = _HEADER.unpack_from(data)
    if (found, version) != (magic, _VERSION):
        raise MessageError(
            f"the message starts with {found!r} and version {version}, expected {magic!r} and"
            f" {_VERSION}"
        )
    if count > most or len(data) != _HEADER.size + count * size:
        raise MessageError(
            f"the message has {len(data):,} bytes for {count:,} rows of {size} bytes, of which"
            f" there are at most {most:,}"
        )
    return bytes(data[_HEADER.size :])


def _check_order(
    name: str,
    clients: Sequence[int],
    error: type[MessageError] | type[RollError] = MessageError,
) -> None:
    for before, after in pairwise(clients):
        if before >= after:
            raise error(f"clients of the {name} must increase: {after} follows {before}")
