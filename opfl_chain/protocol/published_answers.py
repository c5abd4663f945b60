"""The signed messages of an exchange among members, as they are published: one line for a round.

From them and the chain anyone recomputes the verdicts of proved audits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.errors import AnswersInvalid
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import JobId, RoundNumber
from opfl_chain.protocol.statements import AuditMessage

REPORT: Final = "report"
ANSWERS: Final = "answers"
STAGES: Final = (REPORT, ANSWERS)
"""The stages of an exchange; signatures number them from one."""
_MOST_ROUNDS: Final = 1 << 32


def audit_statement(job: JobId, number: RoundNumber, stage: str, body: bytes) -> AuditMessage:
    """Return the statement that a member signs for a message of an exchange."""
    return AuditMessage(job, number, STAGES.index(stage) + 1, keccak256(body))


@dataclass(frozen=True)
class PublishedMessage:
    """A message of an exchange, and its member's signature."""

    rank: int
    stage: str
    body: bytes
    signature: bytes

    def statement(self, job: JobId, number: RoundNumber) -> AuditMessage:
        """Return the signed statement."""
        return audit_statement(job, number, self.stage, self.body)

    @property
    def document(self) -> dict[str, Any]:
        """The message as JSON."""
        return {
            "rank": self.rank,
            "stage": self.stage,
            "body": "0x" + self.body.hex(),
            "signature": "0x" + self.signature.hex(),
        }


Messages = Mapping[tuple[int, str], PublishedMessage]
"""The messages of a round, by rank and stage."""


def encode_round(number: int, messages: Sequence[PublishedMessage]) -> str:
    """Return the line of a round, without its end."""
    return json.dumps({"round": number, "messages": [each.document for each in messages]})


def decode_rounds(text: str) -> dict[RoundNumber, Messages]:
    """Read all lines. A later line of a round replaces an earlier one.

    A last line without an end is being written, or was when its writer was killed: it is ignored.
    """
    found: dict[RoundNumber, Messages] = {}
    *lines, _ = text.split("\n")
    for place, line in enumerate(lines, 1):
        try:
            number, messages = _round(from_json(line.encode()))
        except ValueError as error:
            raise AnswersInvalid(f"line {place} holds no answers: {error}") from None
        found[number] = messages
    return found


def _round(content: Any) -> tuple[RoundNumber, Messages]:
    match content:
        case {"round": int(number), "messages": list(rows), **rest} if not rest:
            pass
        case _:
            raise AnswersInvalid("a line is an object with a round and a list of messages")
    if isinstance(number, bool) or not 0 <= number < _MOST_ROUNDS:
        raise AnswersInvalid(f"the round is {number}, it must be from 0 to 2^32 - 1")
    messages: dict[tuple[int, str], PublishedMessage] = {}
    for message in map(_message, rows):
        if (message.rank, message.stage) in messages:
            raise AnswersInvalid(
                f"round {number} has two messages of stage {message.stage} by member {message.rank}"
            )
        messages[message.rank, message.stage] = message
    return RoundNumber(number), messages


def _message(content: Any) -> PublishedMessage:
    match content:
        case {
            "rank": int(rank),
            "stage": str(stage),
            "body": str(body),
            "signature": str(signature),
            **rest,
        } if not rest:
            pass
        case _:
            raise AnswersInvalid("a message has rank, stage, body and signature, and no more")
    if isinstance(rank, bool) or not 0 <= rank < COMPONENTS:
        raise AnswersInvalid(f"a message has rank {rank}, members have ranks 0, 1 and 2")
    if stage not in STAGES:
        raise AnswersInvalid(f"a message has stage {stage!r:.40}, stages are {', '.join(STAGES)}")
    return PublishedMessage(rank, stage, _bytes("body", body), _bytes("signature", signature))


def _bytes(name: str, text: str) -> bytes:
    if not text.startswith("0x"):
        raise AnswersInvalid(f"{name} {text!r:.40} is not hexadecimal with 0x")
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        raise AnswersInvalid(f"{name} {text!r:.40} is not hexadecimal") from None
