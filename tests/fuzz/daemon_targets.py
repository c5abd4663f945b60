"""JSON messages between daemons."""

from __future__ import annotations

import json

from fuzz_target import Target

from opfl_chain.chain.rpc import tohex
from opfl_chain.protocol.signatures import SIGNATURE_BYTES
from opfl_chain.roles.peers import hex_field, object_in
from opfl_chain.transport.errors import TransportError


def decode_signature(data: bytes) -> bytes:
    return hex_field(object_in(data), "signature", SIGNATURE_BYTES)


def encode_signature(signature: bytes) -> bytes:
    return json.dumps({"signature": tohex(signature)}).encode()


DAEMON_TARGETS = {
    "signature-of-a-peer": Target(
        decode_signature,
        encode_signature,
        (TransportError,),
        (encode_signature(bytes(65)),),
        findings=(b'{"signature": "\\ud800"}', b"[" * 100_000, b'{"signature": ["0x"]}'),
    ),
}
