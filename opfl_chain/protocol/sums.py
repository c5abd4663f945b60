"""Which components of a sum count, from the hashes that members say their components have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.errors import MessageError
from opfl_chain.protocol.shares import HASH_BYTES, held_indices

HELD: Final = 2
Parts = tuple[bytes, bytes]
"""Hashes of the components that a member holds, in the order of `held_indices`."""


def encode_parts(hashes: Sequence[bytes]) -> bytes:
    """Return the message of a member about its components of a sum."""
    if [len(each) for each in hashes] != [HASH_BYTES] * HELD:
        raise MessageError(f"a member holds {HELD} components, each with a hash")
    return b"".join(hashes)


def decode_parts(data: bytes) -> Parts:
    """Read the message of a member about its components of a sum."""
    if len(data) != HELD * HASH_BYTES:
        raise MessageError(f"{HELD} hashes have {HELD * HASH_BYTES} bytes, not {len(data):,}")
    return data[:HASH_BYTES], data[HASH_BYTES:]


@dataclass(frozen=True)
class AgreedSum:
    """The components of a sum that count, and those that a referee has to settle."""

    hashes: Mapping[int, bytes]
    disputes: Mapping[int, tuple[int, ...]]
    """By component, the seats of whom one lies."""
    liars: tuple[int, ...] = ()
    """The seats that are shown to lie."""


def agree(said: Mapping[int, Parts], judged: Mapping[int, bytes] | None = None) -> AgreedSum:
    """Return which components count, from what seats said and a referee found.

    Both holders say the same, or one does and the other was away. If they differ, the referee
    decides, by recomputing this one component.
    """
    hashes: dict[int, bytes] = {}
    disputes: dict[int, tuple[int, ...]] = {}
    liars: set[int] = set()
    for index in range(COMPONENTS):
        given = {
            seat: parts[held_indices(seat).index(index)]
            for seat, parts in sorted(said.items())
            if index in held_indices(seat)
        }
        right = (judged or {}).get(index)
        if len(set(given.values())) == 1:
            hashes[index] = next(iter(given.values()))
        elif right is not None and right in given.values():
            hashes[index] = right
            liars.update(seat for seat, each in given.items() if each != right)
        elif given:
            disputes[index] = tuple(given)
    return AgreedSum(hashes, disputes, tuple(sorted(liars)))
