"""JSON messages between daemons."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from eth_account import Account
from fuzz_target import Target
from opfl_chain.roles.claims import Batch, Entry

from opfl_chain.chain.keys import sign_statement
from opfl_chain.chain.rpc import tohex
from opfl_chain.protocol.signatures import SIGNATURE_BYTES
from opfl_chain.protocol.statements import GradientCommitment, SigningDomain
from opfl_chain.roles.peers import hex_field, object_in
from opfl_chain.transport.errors import TransportError

DOMAIN = SigningDomain(31337, "0x" + "11" * 20)
JOB: Any = SimpleNamespace(id=1, domain=DOMAIN)
NUMBER: Any = 3


class NoBatch(ValueError):
    """The message is not a list."""


def signed_entry(key: int) -> Entry:
    account = Account.from_key(key.to_bytes(32, "big"))
    statement = GradientCommitment(1, NUMBER, account.address, bytes([key]) * 32)
    signature = sign_statement(account, statement, DOMAIN)
    return Entry(account.address, statement.commitment, signature)


def decode_batch(data: bytes) -> Batch:
    """Decode, check signatures and make proofs, as members do."""
    batch = Batch.parse(JOB, NUMBER, data)
    if batch is None:
        raise NoBatch
    for client in batch.signed:
        batch.proof(client)
    batch.merged(batch)
    return batch


def decode_signature(data: bytes) -> bytes:
    return hex_field(object_in(data), "signature", SIGNATURE_BYTES)


def encode_signature(signature: bytes) -> bytes:
    return json.dumps({"signature": tohex(signature)}).encode()


def rows(*entries: Any) -> bytes:
    return json.dumps(entries).encode()


BATCH = Batch(JOB, NUMBER, [signed_entry(7), signed_entry(8), signed_entry(9)])

DAEMON_TARGETS = {
    "batch": Target(
        decode_batch,
        Batch.encode,
        (NoBatch,),
        (BATCH.encode(), Batch(JOB, NUMBER, [signed_entry(7)]).encode()),
        findings=(
            b"[]",
            rows(["0x" + "11" * 20, "0x" + "11" * 31, "0x"]),
            rows(["0x" + "11" * 20, "0x" + "11" * 32, None]),
            b"[" * 100_000,
        ),
    ),
    "signature-of-a-peer": Target(
        decode_signature,
        encode_signature,
        (TransportError,),
        (encode_signature(bytes(65)),),
        findings=(b'{"signature": "\\ud800"}', b"[" * 100_000, b'{"signature": ["0x"]}'),
    ),
}
