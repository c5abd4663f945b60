"""The components of a round's sum, as members state them, and which of them are agreed.

Members first tell each other the hashes of the two components that each holds of the sum, so that
all know which are agreed; the words follow by their hashes. Where two holders differ, a standby
adds up this one component from leaf-bound words, and so says who lies. Where one is away it adds
up too: what one holder alone states may be the sum of anything.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.errors import MessageError
from opfl_chain.protocol.hashing import sha256
from opfl_chain.protocol.holders import weigh
from opfl_chain.protocol.ring import UnsignedWords
from opfl_chain.protocol.shares import HASH_BYTES, held_indices
from opfl_chain.protocol.widths import bytes32

Stated = tuple[bytes, bytes]
"""The hashes of the components that a member holds, its own and the following one."""

_PARTS: Final = struct.Struct(f">4sB{HASH_BYTES}s{HASH_BYTES}s")
_PARTS_MAGIC: Final = b"OPFU"
_REFEREE: Final = struct.Struct(">4sBB")
"""Magic, version, number of components."""
_REFEREE_MAGIC: Final = b"OPFV"
_REFEREE_ROW: Final = struct.Struct(f">B{HASH_BYTES}s")
_VERSION: Final = 2


def part_hash(words: UnsignedWords) -> bytes:
    """Return the hash of one component of a sum. It is uniform, and needs no salt."""
    return sha256(words.astype("<u8", copy=False).tobytes())


def encode_parts(stated: Sequence[bytes]) -> bytes:
    """Encode the hashes of the two components that a member holds of the sum."""
    own, following = (bytes32("hash of a component", each) for each in stated)
    return _PARTS.pack(_PARTS_MAGIC, _VERSION, own, following)


def decode_parts(data: bytes) -> Stated:
    """Read the hashes of the two components that a member holds of the sum."""
    if len(data) != _PARTS.size:
        raise MessageError(f"parts of a sum take {_PARTS.size} bytes, these have {len(data):,}")
    magic, version, own, following = _PARTS.unpack(data)
    if (magic, version) != (_PARTS_MAGIC, _VERSION):
        raise MessageError(
            f"the message starts with {magic!r} and version {version}: it is not about a sum"
        )
    return own, following


def encode_judged(judged: Mapping[int, bytes]) -> bytes:
    """Encode a standby's hashes of components of the sum, by component."""
    rows = [
        _REFEREE_ROW.pack(index, bytes32("hash of a component", each))
        for index, each in sorted(judged.items())
    ]
    return b"".join([_REFEREE.pack(_REFEREE_MAGIC, _VERSION, len(rows)), *rows])


def decode_judged(data: bytes) -> dict[int, bytes]:
    """Read a standby's hashes of components of the sum, by component."""
    count, left = divmod(len(data) - _REFEREE.size, _REFEREE_ROW.size)
    if left or not 0 <= count <= COMPONENTS:
        raise MessageError(f"a message of {len(data):,} bytes cannot hold the hashes of a referee")
    if data[: _REFEREE.size] != _REFEREE.pack(_REFEREE_MAGIC, _VERSION, count):
        raise MessageError(
            f"the message starts with {data[: _REFEREE.size]!r}: it is not of a referee"
        )
    rows = list(_REFEREE_ROW.iter_unpack(data[_REFEREE.size :]))
    indices = [index for index, _ in rows]
    if indices != sorted(set(indices) & set(range(COMPONENTS))):
        raise MessageError(f"components {indices} are not some of 0, 1 and 2 in order")
    return dict(rows)


@dataclass(frozen=True)
class AgreedSum:
    """The agreement of members about the components of a sum."""

    hashes: dict[int, bytes]
    """The hash of each component that two state: both holders, or one and the referee."""
    disputes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The components about which holders differ, and their seats: one of them lies. One seat if the
    referee contradicts the only holder that stated something."""
    unconfirmed: tuple[int, ...] = ()
    """The components that fewer than two state."""
    liars: tuple[int, ...] = ()
    """The seats that are shown to lie."""

    @property
    def for_referee(self) -> tuple[int, ...]:
        """The components that a standby must add up before the sum is opened."""
        return tuple(sorted({*self.disputes, *self.unconfirmed}))


def agree(parts: Mapping[int, Stated], judged: Mapping[int, bytes] | None = None) -> AgreedSum:
    """Return which components of a sum are agreed, from what members stated, by seat."""
    hashes: dict[int, bytes] = {}
    disputes: dict[int, tuple[int, ...]] = {}
    unconfirmed: list[int] = []
    liars: set[int] = set()
    for index in range(COMPONENTS):
        said = {
            seat: stated[held_indices(seat).index(index)]
            for seat, stated in sorted(parts.items())
            if index in held_indices(seat)
        }
        found = weigh(said)
        if judged and not found.is_confirmed:
            found = weigh(said, judged.get(index))
        liars.update(found.liars)
        if found.disputed:
            disputes[index] = found.disputed
        elif found.is_confirmed and found.word is not None:
            hashes[index] = found.word
        else:
            unconfirmed.append(index)
    return AgreedSum(hashes, disputes, tuple(unconfirmed), tuple(sorted(liars)))
