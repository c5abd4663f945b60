"""The canonical JSON of a trail, and its digest.

Canonical JSON has sorted keys, no spaces and ASCII only. Byte strings are hexadecimal with `0x`,
the integers of an event are decimal strings, because amounts in wei do not fit into the numbers of
most JSON parsers, and enums are the names of their values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

from opfl_chain.chain.contracts.contract import Event
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.trail.record import Entry, Trail

FORMAT: Final = 2
_DIGEST: Final = "digest"


def readable(value: Any) -> Any:
    """Return the JSON form of a value of an event."""
    if isinstance(value, Enum):
        return value.name.lower()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: readable(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): readable(item) for key, item in value.items()}
    return [readable(item) for item in value]


def entry_document(entry: Entry[Event]) -> dict[str, Any]:
    """Return the document of one decoded event."""
    return {
        "event": entry.name,
        "contract": entry.contract,
        "round": entry.round,
        "block": entry.block,
        "block_hash": entry.block_hash,
        "transaction": entry.transaction,
        "log_index": entry.log_index,
        "arguments": readable(entry.event),
    }


def trail_document(trail: Trail) -> dict[str, Any]:
    """Return the document of the whole trail, with its digest."""
    document = {
        "format": FORMAT,
        "chain_id": trail.chain_id,
        "genesis": trail.genesis,
        "contracts": dict(trail.contracts),
        "job": trail.job,
        "first_block": trail.first_block,
        "block": trail.block,
        "events": [entry_document(entry) for entry in trail.entries],
        "calls": readable(trail.calls),
        "parents": {str(number): parent for number, parent in trail.parents.items()},
    }
    return {**document, _DIGEST: digest(document)}


def digest(document: Mapping[str, Any]) -> str:
    """Return the keccak256 of a document without its digest."""
    content = {key: value for key, value in document.items() if key != _DIGEST}
    return "0x" + keccak256(canonical_bytes(content)).hex()


def canonical_bytes(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")
