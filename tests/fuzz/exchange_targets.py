"""Messages of proved audits: deliveries with a proof, reports and answers of members."""

from __future__ import annotations

import json

import numpy as np
from fuzz_target import Target, joined, parts_of
from protocol_targets import PROOF, proof_package

from opfl_chain.chain.rpc import tohex
from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.delivery import (
    Delivery,
    Expected,
    InputDelivery,
    decode_delivery,
    encode_delivery,
    largest_delivery,
)
from opfl_chain.protocol.errors import ShareError
from opfl_chain.protocol.exchange import (
    Answers,
    Report,
    ReportRow,
    answers_on,
    decode_revealed,
    encode_revealed,
    stated_subject,
)
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.proof.package import ProofPackage
from opfl_chain.protocol.shares import SharedVector
from opfl_chain.protocol.signatures import SIGNATURE_BYTES
from opfl_chain.protocol.verdict import FaultReason
from opfl_chain.roles.peers import bytes_field, hex_field, object_in
from opfl_chain.transport.errors import TransportError

LEAVES = b"\5" * 32
PLACES = [1, 3]
RANK_AT = 5
"""The place of the rank in a report, and in a sheet of answers."""
HEARD = 96


def expected_by(rank: int) -> Expected:
    return Expected(Scheme.SHARES, rank, gradient_words=3, input_words=2, proof=PROOF)


def proved_delivery(rank: int) -> bytes:
    gradient, given = (
        SharedVector.split(np.arange(count), b"\1" * 32, b"\2" * 32).packages(
            Scheme.SHARES, [bytes([salt]) * 32 for salt in range(3)]
        )[rank]
        for count in (3, 2)
    )
    proof = ProofPackage.decode(proof_package(rank), PROOF, rank)
    return encode_delivery(
        Delivery(gradient, InputDelivery(given, b"\3" * 32, (b"\4" * 32,)), proof=proof)
    )


def decode_proved_delivery(data: bytes) -> Delivery:
    """Decode for the member of the first package."""
    expected = expected_by(int.from_bytes(data[35:36], "big"))
    decoded = decode_delivery(data, expected)
    assert len(data) <= largest_delivery(expected)
    return decoded


def answers(rank: int) -> Answers:
    return Answers(rank, b"\6" * 32, Answer(1, 2, 3, 4), Answer(5, 6, 7, 2**127 - 2))


def report(rank: int) -> Report:
    sound = ReportRow(None, LEAVES, answers(rank).commitment)
    return Report(rank, b"\7" * 32, (ReportRow(FaultReason.NOT_DELIVERED), sound, sound, sound))


REPORTS = [report(rank).encode() for rank in range(3)]


def decode_report(data: bytes) -> Report:
    """Decode as the author that it names, on what it says it is about."""
    subject, count = stated_subject(data)
    return Report.decode(data, data[RANK_AT], subject, count)


def revealed(rank: int) -> bytes:
    return encode_revealed(rank, REPORTS, dict.fromkeys(PLACES, answers(rank)))


def decode_answers(data: bytes) -> dict[int, Answers]:
    rank = int.from_bytes(data[HEARD + RANK_AT : HEARD + RANK_AT + 1], "big")
    return decode_revealed(data, rank, REPORTS, PLACES)


def encode_answers(found: dict[int, Answers]) -> bytes:
    return encode_revealed(found[PLACES[0]].rank, REPORTS, found)


def decode_evidence(data: bytes) -> bytes:
    """Look for the answers on one delivery, as who settles a dispute does."""
    said, told = [*parts_of(data), b"", b""][:2]
    answers_on(said, told, 1, LEAVES)
    return data


def decode_message(data: bytes) -> tuple[bytes, bytes]:
    found = object_in(data)
    return bytes_field(found, "body"), hex_field(found, "signature", SIGNATURE_BYTES)


def encode_message(message: tuple[bytes, bytes]) -> bytes:
    body, signature = message
    return json.dumps({"body": tohex(body), "signature": tohex(signature)}).encode()


EXCHANGE_TARGETS = {
    "proved-delivery": Target(
        decode_proved_delivery,
        encode_delivery,
        (ShareError,),
        tuple(proved_delivery(rank) for rank in range(3)),
        canonical=True,
    ),
    "report": Target(decode_report, Report.encode, (ShareError,), tuple(REPORTS), canonical=True),
    "revealed-answers": Target(
        decode_answers,
        encode_answers,
        (ShareError,),
        tuple(revealed(rank) for rank in range(3)),
        canonical=True,
    ),
    "evidence": Target(
        decode_evidence, bytes, (ShareError,), (joined(REPORTS[1], revealed(1)),), canonical=True
    ),
    "audit-message-of-a-peer": Target(
        decode_message,
        encode_message,
        (TransportError,),
        (encode_message((b"body", bytes(65))),),
        findings=(b'{"body": "\\ud800"}', b"[" * 100_000, b'{"body": "0x", "signature": "0x00"}'),
    ),
}
