"""Hand-overs to a standby that settles a dispute: keys of single components.

A key opens one component of one bundle, which tells nothing about the words. What is wanted counts
if two seats want the very same; a key may come from any holder, because what it opens is bound by
leaf hashes.
A referee opens at most two components of a contribution, as many as any member holds.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.errors import MessageError
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.shares import HASH_BYTES
from opfl_chain.protocol.widths import bytes32

MOST_COMPONENTS: Final = 2
"""Components of one contribution that a referee may learn: all three would show it."""
SEATS_NEEDED: Final = 2
"""Seats that must want the same: one of them is honest."""
_MAGIC: Final = b"OPFK"
_VERSION: Final = 2
_HEADER: Final = struct.Struct(">4sBI")
_ROW: Final = struct.Struct(f">IB{HASH_BYTES}s{HASH_BYTES}s{HASH_BYTES}s{HASH_BYTES}s")
"""Client, component, content hashes of contribution and answer, and the keys of both."""
NOTHING: Final = bytes(HASH_BYTES)


@dataclass(frozen=True)
class Wanted:
    """A component that a referee is to recompute."""

    client: ClientIndex
    component: int
    contribution: bytes
    """Content hash of the contribution."""
    answer: bytes = NOTHING
    """Content hash of the answer; zero if a sum is disputed."""


@dataclass(frozen=True)
class HandedKeys:
    """The keys of one component's bodies; zero where the seat holds none."""

    gradient: bytes = NOTHING
    answer: bytes = NOTHING


@dataclass(frozen=True)
class HandOver:
    """All that a seat wants a referee to recompute, with the keys that it holds."""

    keys: Mapping[Wanted, HandedKeys]

    def encode(self) -> bytes:
        """Return the wire format, in the order of clients and components."""
        rows = (
            _ROW.pack(
                wanted.client,
                wanted.component,
                bytes32("contribution", wanted.contribution),
                bytes32("answer", wanted.answer),
                bytes32("key", keys.gradient),
                bytes32("key", keys.answer),
            )
            for wanted, keys in sorted(self.keys.items(), key=lambda row: _place(row[0]))
        )
        return b"".join([_HEADER.pack(_MAGIC, _VERSION, len(self.keys)), *rows])

    @classmethod
    def decode(cls, data: bytes, most: int) -> HandOver:
        """Read a hand-over about at most so many clients."""
        if len(data) < _HEADER.size:
            raise MessageError(f"a hand-over has at least {_HEADER.size} bytes, not {len(data)}")
        magic, version, count = _HEADER.unpack_from(data)
        if (magic, version) != (_MAGIC, _VERSION) or count > most * COMPONENTS:
            raise MessageError(f"not a hand-over of keys of at most {most:,} clients")
        if len(data) != _HEADER.size + count * _ROW.size:
            raise MessageError(f"{count:,} keys do not take {len(data):,} bytes")
        keys: dict[Wanted, HandedKeys] = {}
        last = (-1, -1)
        for client, component, contribution, answer, *both in _ROW.iter_unpack(
            data[_HEADER.size :]
        ):
            wanted = Wanted(ClientIndex(client), component, contribution, answer)
            if component >= COMPONENTS or _place(wanted) <= last:
                raise MessageError("clients and components of a hand-over must increase")
            keys[wanted], last = HandedKeys(*both), _place(wanted)
        return cls(keys)


def agreed_wanted(handed: Iterable[HandOver]) -> list[Wanted]:
    """Return what two seats want, without what would show a contribution as a whole.

    They must want the same in all: honest seats do. Of what they have in common only, a seat could
    leave a part out, and the referee would add up another sum than the one that is disputed.
    """
    named = Counter(frozenset(each.keys) for each in handed)
    found = next((each for each, count in named.items() if count >= SEATS_NEEDED), frozenset())
    components = Counter(wanted.client for wanted in found)
    return sorted(
        (wanted for wanted in found if components[wanted.client] <= MOST_COMPONENTS), key=_place
    )


def _place(wanted: Wanted) -> tuple[int, int]:
    return wanted.client, wanted.component
