"""Keys of components that members hand to who took a seat after a round opened."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.errors import MessageError
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.shares import HASH_BYTES
from opfl_chain.protocol.widths import bytes32

_ROW: Final = struct.Struct(f">BI{HASH_BYTES}sB{HASH_BYTES}s")
"""Kind of bundle, client, content hash, component, key."""
MOST_BYTES: Final = 2 * _ROW.size
"""A message is about one bundle, of which a seat holds two components."""


@dataclass(frozen=True)
class HandedKey:
    """The key of one component's body in one bundle."""

    kind: BundleKind
    client: ClientIndex
    content: bytes
    """Content hash of the bundle."""
    component: int
    key: bytes


def encode_handed_keys(keys: Iterable[HandedKey]) -> bytes:
    """Return the wire format."""
    return b"".join(
        _ROW.pack(
            each.kind,
            each.client,
            bytes32("content hash", each.content),
            each.component,
            bytes32("key", each.key),
        )
        for each in keys
    )


def decode_handed_keys(data: bytes) -> list[HandedKey]:
    """Read the keys of one message. Whether they open anything is for the reader to try."""
    if len(data) > MOST_BYTES or len(data) % _ROW.size:
        raise MessageError(
            f"{len(data):,} bytes cannot be keys: each takes {_ROW.size}, and a message has at most"
            f" {MOST_BYTES}"
        )
    found = []
    for kind, client, content, component, key in _ROW.iter_unpack(data):
        if kind not in {*BundleKind} or component >= COMPONENTS:
            raise MessageError(
                f"kind {kind} and component {component} of a handed key do not exist"
            )
        found.append(HandedKey(BundleKind(kind), ClientIndex(client), content, component, key))
    return found
