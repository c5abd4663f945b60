"""A disputed component as a holder hands it to somebody who settles the dispute."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.errors import MessageError
from opfl_chain.protocol.identifiers import ClientIndex, RoundNumber

_HASH_BYTES: Final = 32
_MOST: Final = 1 << 32
_NUMBERS: Final = ("round", "attempt", "client", "component")
_HASHES: Final = ("opening", "gradient_key", "answer_key")
_BYTES: Final = ("contribution", "answer", "weights")
_ANSWERS: Final = "answers"


@dataclass(frozen=True)
class DisputedComponent:
    """Both bundles of a client, and the keys of one of their three components.

    The keys open nothing else, and one component tells nothing about gradient and input.
    """

    round: RoundNumber
    attempt: int
    """The session in which it is disputed; 0 is the one before the verdict."""
    client: ClientIndex
    component: int
    opening: bytes
    contribution: bytes
    """The encoded bundle."""
    answer: bytes
    gradient_key: bytes
    answer_key: bytes
    answers: Mapping[ClientIndex, bytes]
    """Content hashes of all answers that the session is about."""
    weights: bytes
    """The weights of the round, as the server serves them."""

    def encode(self) -> bytes:
        """Return the file."""
        document: dict[str, Any] = {name: getattr(self, name) for name in _NUMBERS}
        document |= {name: f"0x{getattr(self, name).hex()}" for name in (*_HASHES, *_BYTES)}
        answers = sorted(self.answers.items())
        document[_ANSWERS] = [[client, f"0x{content.hex()}"] for client, content in answers]
        return json.dumps(document).encode()

    @classmethod
    def decode(cls, data: bytes) -> DisputedComponent:
        """Read a file."""
        try:
            document = from_json(data)
        except ValueError as error:
            raise MessageError(f"a disputed component is a JSON object: {error}") from None
        names = {*_NUMBERS, *_HASHES, *_BYTES, _ANSWERS}
        if not isinstance(document, dict) or document.keys() != names:
            raise MessageError(f"a disputed component has {', '.join(sorted(names))}")
        number, attempt, client, component = (_number(name, document[name]) for name in _NUMBERS)
        if component >= COMPONENTS:
            raise MessageError(f"component {component} does not exist, use 0, 1 or 2")
        opening, gradient_key, answer_key = (_bytes(n, document[n], _HASH_BYTES) for n in _HASHES)
        contribution, answer, weights = (_bytes(name, document[name]) for name in _BYTES)
        return cls(
            RoundNumber(number),
            attempt,
            ClientIndex(client),
            component,
            opening,
            contribution,
            answer,
            gradient_key,
            answer_key,
            _answers(document[_ANSWERS]),
            weights,
        )


def _answers(rows: Any) -> dict[ClientIndex, bytes]:
    found: dict[ClientIndex, bytes] = {}
    for row in rows if isinstance(rows, list) else [None]:
        match row:
            case [index, content]:
                client = ClientIndex(_number("client", index))
            case _:
                raise MessageError("answers are a list of clients and content hashes")
        if client <= max(found, default=-1):
            raise MessageError("clients of answers must increase")
        found[client] = _bytes("content hash", content, _HASH_BYTES)
    return found


def _number(name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value < _MOST:
        raise MessageError(f"{name} is {value!r:.40}, it must be from 0 to {_MOST - 1:,}")
    return value


def _bytes(name: str, text: Any, size: int | None = None) -> bytes:
    try:
        found = bytes.fromhex(text[2:]) if isinstance(text, str) and text[:2] == "0x" else None
    except ValueError:
        found = None
    if found is None or (size is not None and len(found) != size):
        wanted = "bytes" if size is None else f"{size} bytes"
        raise MessageError(f"{name} is {text!r:.40}, it must be {wanted} in hexadecimal with 0x")
    return found
