"""Verdicts: the clients that passed a round and those at fault, as members attest them."""

import struct
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeVar

from opfl_chain.protocol.abi import abi_encode, byte_string
from opfl_chain.protocol.errors import VerdictError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.widths import unsigned, unsigned_bytes

Element = TypeVar("Element")

_FAULT: Final = struct.Struct(">IB")


class FaultReason(IntEnum):
    """The reason of a fault. The values are used in verdicts and on chain."""

    COMMITMENT_MISMATCH = 1
    NOT_DELIVERED = 2
    INPUT_NOT_COMMITTED = 3
    REPLAY_OUTSIDE = 4


@dataclass(frozen=True, slots=True)
class Fault:
    """One client's fault."""

    client: ClientIndex
    reason: FaultReason


class _Bitmap(AbstractSet[ClientIndex]):
    """The clients whose bits are set. Stores the bits alone, since members may attest any bytes."""

    def __init__(self, bits: bytes) -> None:
        self._bits = bytes(bits)

    def __contains__(self, client: object) -> bool:
        if not isinstance(client, int) or not 0 <= client < 8 * len(self._bits):
            return False
        return bool(self._bits[client >> 3] >> (client & 7) & 1)

    def __iter__(self) -> Iterator[ClientIndex]:
        for position, byte in enumerate(self._bits):
            for bit in range(8):
                if byte >> bit & 1:
                    yield ClientIndex(8 * position + bit)

    def __len__(self) -> int:
        return int.from_bytes(self._bits, "little").bit_count()

    def __hash__(self) -> int:
        return self._hash()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._bits.hex()})"

    @classmethod
    def _from_iterable(cls, elements: Iterable[Element]) -> frozenset[Element]:
        return frozenset(elements)


@dataclass(frozen=True)
class Verdict:
    """Clients that passed and clients at fault; any other client was not in the round.

    ``faults`` are in increasing order of client. Make one with :meth:`of` or :meth:`decode`.
    """

    passed: AbstractSet[ClientIndex]
    faults: tuple[Fault, ...]

    def __post_init__(self) -> None:
        for client in self.passed:
            unsigned("client index", client, 32)
        for fault in self.faults:
            unsigned("client index", fault.client, 32)
            if fault.client in self.passed:
                raise VerdictError(
                    f"client {fault.client} passed and is at fault ({fault.reason.name.lower()})"
                )
        for before, after in zip(self.faults, self.faults[1:], strict=False):
            if before.client >= after.client:
                raise VerdictError(
                    f"faults must be in increasing order of client and name each client once:"
                    f" {after.client} follows {before.client}"
                )

    @classmethod
    def of(
        cls, passed: AbstractSet[ClientIndex], faults: Mapping[ClientIndex, FaultReason]
    ) -> "Verdict":
        """Make a verdict from the clients that passed and the fault reasons of the others."""
        return cls(
            frozenset(passed), tuple(Fault(client, faults[client]) for client in sorted(faults))
        )

    @classmethod
    def decode(cls, passes: bytes, faults: bytes) -> "Verdict":
        """Decode an attested verdict; trailing zero bytes of ``passes`` are allowed."""
        return cls(_Bitmap(passes), _decode_faults(faults))

    @property
    def passes_bytes(self) -> bytes:
        """The bitmap of passes, without trailing zero bytes."""
        bitmap = bytearray(max(self.passed, default=-1) // 8 + 1)
        for client in self.passed:
            bitmap[client >> 3] |= 1 << (client & 7)
        return bytes(bitmap)

    @property
    def faults_bytes(self) -> bytes:
        """The faults, five bytes each: the client's index, then the reason."""
        return b"".join(
            unsigned_bytes("client index", fault.client, 32)
            + unsigned_bytes("reason", fault.reason, 8)
            for fault in self.faults
        )

    @property
    def hash(self) -> bytes:
        """The hash that a member attests."""
        return verdict_hash(self.passes_bytes, self.faults_bytes)


def verdict_hash(passes: bytes, faults: bytes) -> bytes:
    """Return the hash of an encoded verdict."""
    return keccak256(abi_encode(byte_string(passes), byte_string(faults)))


def _decode_faults(faults: bytes) -> tuple[Fault, ...]:
    if len(faults) % _FAULT.size:
        raise VerdictError(f"faults have {len(faults)} bytes, expected a multiple of 5")
    return tuple(
        Fault(ClientIndex(client), _reason(client, code))
        for client, code in _FAULT.iter_unpack(faults)
    )


def _reason(client: ClientIndex, code: int) -> FaultReason:
    try:
        return FaultReason(code)
    except ValueError:
        known = ", ".join(f"{reason.value} {reason.name.lower()}" for reason in FaultReason)
        raise VerdictError(f"client {client} has fault reason {code}; known: {known}") from None
