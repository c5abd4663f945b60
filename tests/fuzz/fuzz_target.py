"""A decoder under test, and the encoding of several parts as one fuzzer input."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Target:
    """A decoder of external input.

    It returns or raises one of its own errors, whatever it is given. What it accepts it encodes to
    the same bytes again, or, where several bytes mean the same, to bytes that stay as they are.
    """

    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    refusals: tuple[type[Exception], ...]
    """The errors that it may raise."""
    seeds: tuple[bytes, ...]
    """Well-formed inputs, the first of which is accepted."""
    canonical: bool = False
    """True if no other bytes mean the same."""
    findings: tuple[bytes, ...] = ()
    """Inputs that once made it misbehave."""

    def accepts(self, data: bytes) -> bool:
        """Return whether it decodes. Raises if the decoder neither decodes nor refuses."""
        try:
            value = self.decode(data)
        except self.refusals:
            return False
        encoded = self.encode(value)
        expected = data if self.canonical else self.encode(self.decode(encoded))
        if encoded != expected:
            raise AssertionError(f"{expected!r} is encoded as {encoded!r}")
        return True


def joined(*parts: bytes) -> bytes:
    """Encode several byte strings as one input."""
    return b"".join(struct.pack(">I", len(part)) + bytes(part) for part in parts)


def parts_of(data: bytes) -> list[bytes]:
    """Split the output of `joined`. Accepts any bytes: the last part ends where they end."""
    parts = []
    while data:
        size = int.from_bytes(data[:4], "big")
        parts.append(data[4 : 4 + size])
        data = data[4 + size :]
    return parts


class RecordedStream:
    """A socket that yields recorded bytes, and ends."""

    def __init__(self, data: bytes) -> None:
        self._left = memoryview(data)

    def recv_into(self, buffer: memoryview) -> int:
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count

    def settimeout(self, seconds: float | None) -> None:
        """Ignore the setting: it never waits."""

    def setblocking(self, flag: bool) -> None:
        """Ignore the setting: it never waits."""
