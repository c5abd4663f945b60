"""The signed messages of members on audits, as they are published: one line for a session.

From them and the chain anyone recomputes the verdicts of proved audits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from opfl_chain.protocol.errors import AnswersInvalid
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import JobId, RoundNumber
from opfl_chain.protocol.statements import MemberMessage

_MOST_NUMBER: Final = 1 << 32
_MOST_AUTHOR: Final = 1 << 8
_HASH_BYTES: Final = 32


@dataclass(frozen=True)
class PublishedMessage:
    """A message of a member in a slot, and its signature."""

    number: int
    """The author's number on the roster."""
    slot: int
    body: bytes
    signature: bytes

    def statement(self, job: JobId, round_: RoundNumber, opening: bytes) -> MemberMessage:
        """Return the signed statement."""
        return MemberMessage(job, round_, opening, self.slot, keccak256(self.body))

    @property
    def document(self) -> dict[str, Any]:
        """The message as JSON."""
        return {
            "number": self.number,
            "slot": self.slot,
            "body": "0x" + self.body.hex(),
            "signature": "0x" + self.signature.hex(),
        }


Messages = Mapping[tuple[int, int], PublishedMessage]
"""The messages of a round, by the author's number and slot."""


@dataclass(frozen=True)
class PublishedRound:
    """The messages of one opening of a round."""

    opening: bytes
    messages: Messages


def encode_round(number: int, opening: bytes, messages: Sequence[PublishedMessage]) -> str:
    """Return the line of a session of a round, without its end."""
    content = {
        "round": number,
        "opening": "0x" + opening.hex(),
        "messages": [each.document for each in messages],
    }
    return json.dumps(content)


def decode_rounds(text: str) -> dict[RoundNumber, PublishedRound]:
    """Read all lines. Later sessions of a round add messages; another opening replaces them.

    A last line without an end is being written, or was when its writer was killed: it is ignored.
    """
    found: dict[RoundNumber, PublishedRound] = {}
    *lines, _ = text.split("\n")
    for place, line in enumerate(lines, 1):
        try:
            number, session = _round(from_json(line.encode()))
        except ValueError as error:
            raise AnswersInvalid(f"line {place} holds no answers: {error}") from None
        known = found.get(number)
        if known is not None and known.opening == session.opening:
            session = PublishedRound(session.opening, {**known.messages, **session.messages})
        found[number] = session
    return found


def _round(content: Any) -> tuple[RoundNumber, PublishedRound]:
    match content:
        case {"round": number, "opening": str(opening), "messages": list(rows), **rest} if not rest:
            pass
        case _:
            raise AnswersInvalid("a line is an object with round, opening and a list of messages")
    messages: dict[tuple[int, int], PublishedMessage] = {}
    for message in map(_message, rows):
        if (message.number, message.slot) in messages:
            raise AnswersInvalid(
                f"round {number!r:.40} has two messages in slot {message.slot} by member"
                f" {message.number}"
            )
        messages[message.number, message.slot] = message
    found = _bytes("opening", opening)
    if len(found) != _HASH_BYTES:
        raise AnswersInvalid(f"the opening has {len(found)} bytes, it must have {_HASH_BYTES}")
    return RoundNumber(_number("round", number, _MOST_NUMBER)), PublishedRound(found, messages)


def _message(content: Any) -> PublishedMessage:
    match content:
        case {
            "number": number,
            "slot": slot,
            "body": str(body),
            "signature": str(signature),
            **rest,
        } if not rest:
            pass
        case _:
            raise AnswersInvalid("a message has number, slot, body and signature, and no more")
    return PublishedMessage(
        _number("number", number, _MOST_AUTHOR),
        _number("slot", slot, _MOST_NUMBER),
        _bytes("body", body),
        _bytes("signature", signature),
    )


def _number(name: str, value: Any, limit: int) -> int:
    if type(value) is not int or not 0 <= value < limit:
        raise AnswersInvalid(f"{name} is {value!r:.40}, it must be from 0 to {limit - 1:,}")
    return value


def _bytes(name: str, text: str) -> bytes:
    if not text.startswith("0x"):
        raise AnswersInvalid(f"{name} {text!r:.40} is not hexadecimal with 0x")
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        raise AnswersInvalid(f"{name} {text!r:.40} is not hexadecimal") from None
