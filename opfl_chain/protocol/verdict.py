"""Verdicts: the clients whose contributions are accepted, as members attest them."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.widths import unsigned

Element = TypeVar("Element")


class Outcome(IntEnum):
    """The end of the audit of a contribution. Members sign the values, and contracts read them."""

    PASSED = 1
    OUTSIDE = 2
    UNANSWERED = 3

    def ends_from(self, response: int) -> int:
        """Return the first block in which this can end an audit; ``response`` ends the window."""
        return response + 1 if self is Outcome.UNANSWERED else 0


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
    """The clients that passed. Make one with :meth:`of` or :meth:`decode`."""

    passed: AbstractSet[ClientIndex]

    @classmethod
    def of(cls, passed: Iterable[ClientIndex]) -> "Verdict":
        """Make a verdict from the clients that passed."""
        return cls(frozenset(ClientIndex(unsigned("client index", each, 32)) for each in passed))

    @classmethod
    def decode(cls, passes: bytes) -> "Verdict":
        """Decode what a member attested. Any bytes are a bitmap; honest ones end with no zero."""
        return cls(_Bitmap(passes))

    @property
    def passes_bytes(self) -> bytes:
        """The bitmap of passes, without trailing zero bytes."""
        bitmap = bytearray(max(self.passed, default=-1) // 8 + 1)
        for client in self.passed:
            bitmap[client >> 3] |= 1 << (client & 7)
        return bytes(bitmap)

    @property
    def hash(self) -> bytes:
        """The hash of the verdict that a member attests."""
        return verdict_hash(self.passes_bytes)


def verdict_hash(passes: bytes) -> bytes:
    """Return the hash of an attested verdict: of the very bytes, zeros at their end included."""
    return keccak256(passes)


def passed_clients(passes: bytes) -> AbstractSet[ClientIndex]:
    """Return the clients that passed, from the bytes of a verdict."""
    return Verdict.decode(passes).passed


def has_passed(passes: bytes, client: ClientIndex) -> bool:
    """Return whether a client passed, from the bytes of a verdict."""
    return client in passed_clients(passes)
