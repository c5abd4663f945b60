"""Results of a meeting inside MPC, as members state them, and the rule by which they count."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from opfl_chain.protocol.errors import MessageError, ProtocolError
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.verdict import Verdict

_MAGIC: Final = b"OPFM"
_HEADER: Final = struct.Struct(">4sBB")
"""Magic, version, and whether the meeting came to an end."""
_VERSION: Final = 2
VOTES_NEEDED: Final = 2
"""Members that must say the same: one of them is honest, and was there."""


@dataclass(frozen=True)
class Results:
    """The clients whose contributions passed a meeting that came to its end."""

    passed: frozenset[ClientIndex]
    ABORTED: ClassVar[bytes] = _HEADER.pack(_MAGIC, _VERSION, 0)
    """The message of a member for which the meeting did not come to its end."""

    def encode(self) -> bytes:
        """Return the wire format."""
        return _HEADER.pack(_MAGIC, _VERSION, 1) + Verdict.of(self.passed).passes_bytes

    @classmethod
    def decode(cls, data: bytes) -> Results | None:
        """Read the results of a meeting; None if it was aborted."""
        if data == cls.ABORTED:
            return None
        header = _HEADER.pack(_MAGIC, _VERSION, 1)
        if data[: len(header)] != header:
            raise MessageError("the message does not hold results of a meeting")
        passes = data[len(header) :]
        found = cls(frozenset(Verdict.decode(passes).passed))
        if found.encode() != data:
            raise MessageError("the results of a meeting end with a zero byte")
        return found


def agreed_results(values: Mapping[int, bytes | None]) -> frozenset[ClientIndex] | None:
    """Return the clients that passed, if two members say so, or None if the meeting failed.

    Two honest members that were in the meeting to its end have the same results. If only one was,
    the third decides whether they count: it cannot make them others than they are.
    """
    said = []
    for body in values.values():
        try:
            found = Results.decode(body) if body is not None else None
        except ProtocolError:
            found = None
        if found is not None:
            said.append(found.passed)
    return next((each for each in said if said.count(each) >= VOTES_NEEDED), None)
