"""Messages among members: lists, complaints, echoes, reports, words, sums and hand-overs."""

from __future__ import annotations

import json

from fuzz_target import Target
from protocol_targets import CONTEXT, SEALING_KEYS

from opfl_chain.chain.rpc import tohex
from opfl_chain.protocol.audit_exchange import Answers, RefereeReveal, Report, ReportRow, Reveal
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.disputed import DisputedComponent
from opfl_chain.protocol.echo import Echo
from opfl_chain.protocol.errors import AnswersInvalid, ProtocolError, SealingError
from opfl_chain.protocol.handed_keys import HandedKey, decode_handed_keys, encode_handed_keys
from opfl_chain.protocol.meeting import Results
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.published_answers import (
    PublishedMessage,
    PublishedRound,
    decode_rounds,
    encode_round,
)
from opfl_chain.protocol.referee import HandedKeys, HandOver, Wanted
from opfl_chain.protocol.roll import Complaints, Listed, decode_pairs
from opfl_chain.protocol.sealing import Complaint, file_complaint, verify_complaint
from opfl_chain.protocol.signatures import SIGNATURE_BYTES
from opfl_chain.protocol.sums import decode_judged, decode_parts, encode_judged, encode_parts
from opfl_chain.roles.peers import bytes_field, hex_field, object_in
from opfl_chain.transport.errors import TransportError

COMPLAINTS = [
    file_complaint(key, seat, SEALING_KEYS[seat - 1].public, CONTEXT)
    for seat, key in enumerate(SEALING_KEYS)
]
WORDS = Answers(1, Answer(1, 2, 3, 4), Answer(5, 6, 7, 2**127 - 2))
REPORT = Report(1, bytes(32), {2: ReportRow(WORDS.commitment), 3: COMPLAINTS[1], 9: COMPLAINTS[1]})


def decode_complaint(data: bytes) -> Complaint:
    decoded = Complaint.decode(data)
    verify_complaint(decoded, SEALING_KEYS[1].public, SEALING_KEYS[0].public, CONTEXT)
    return decoded


ANSWERS_LINE = encode_round(
    7, b"\1" * 32, [PublishedMessage(n, s, b"body", b"\1" * 65) for n in range(3) for s in (7, 9)]
)
PUBLISHED = f"{ANSWERS_LINE}\n".encode()


def encode_published(rounds: dict[int, PublishedRound]) -> bytes:
    lines = (
        encode_round(number, each.opening, list(each.messages.values()))
        for number, each in rounds.items()
    )
    return "".join(f"{line}\n" for line in lines).encode()


def encode_results(results: Results | None) -> bytes:
    return results.encode() if results is not None else Results.ABORTED


def decode_message(data: bytes) -> tuple[bytes, bytes]:
    found = object_in(data)
    return bytes_field(found, "body"), hex_field(found, "signature", SIGNATURE_BYTES)


def encode_message(message: tuple[bytes, bytes]) -> bytes:
    body, signature = message
    return json.dumps({"body": tohex(body), "signature": tohex(signature)}).encode()


KEYS_HANDED = HandOver(
    {
        Wanted(1, 0, b"\1" * 32, b"\2" * 32): HandedKeys(b"\3" * 32, b"\4" * 32),
        Wanted(1, 2, b"\1" * 32): HandedKeys(),
    }
)

DISPUTED = DisputedComponent(
    *(7, 0, 2, 1, b"\1" * 32, b"contribution", b"answer", b"\2" * 32, b"\3" * 32),
    {2: b"\4" * 32, 5: b"\5" * 32},
    b"weights",
)

EXCHANGE_TARGETS = {
    "complaint": Target(
        decode_complaint,
        Complaint.encode,
        (SealingError,),
        tuple(complaint.encode() for complaint in COMPLAINTS),
        canonical=True,
        findings=(bytes(132), COMPLAINTS[0].encode()[:100] + b"\xff" * 32),
    ),
    "complaints": Target(
        lambda data: Complaints.decode(data, 1, 4),
        Complaints.encode,
        (ProtocolError,),
        (
            Complaints({2: (b"\1" * 32, COMPLAINTS[1]), 5: (b"\2" * 32, COMPLAINTS[1])}).encode(),
            Complaints({}).encode(),
        ),
        canonical=True,
    ),
    "echo": Target(
        Echo.decode,
        Echo.encode,
        (ProtocolError,),
        (Echo.of({0: b"a", 2: b"c"}).encode(),),
        canonical=True,
    ),
    "list": Target(
        lambda data: Listed.decode(data, 9),
        Listed.encode,
        (ProtocolError,),
        (Listed({0: b"\1" * 32, 7: b"\2" * 32}).encode(), Listed({}).encode()),
        canonical=True,
    ),
    "pairs": Target(
        decode_pairs,
        lambda pairs: b"".join(index.to_bytes(4, "big") + found for index, found in pairs),
        (ProtocolError,),
        (bytes(36) + b"\0\0\0\1" + b"\2" * 32, b""),
        canonical=True,
    ),
    "report": Target(
        lambda data: Report.decode(data, 1),
        Report.encode,
        (ProtocolError,),
        (REPORT.encode(), Report(1, bytes(32), {}).encode()),
        canonical=True,
        findings=(REPORT.encode()[:6] + b"\xff" * 4,),
    ),
    "reveal": Target(
        lambda data: Reveal.decode(data, 1),
        Reveal.encode,
        (ProtocolError,),
        (Reveal(1, {2: WORDS, 4: WORDS}).encode(), Reveal(1, {}).encode()),
        canonical=True,
    ),
    "referee-reveal": Target(
        lambda data: RefereeReveal.decode(data, 3),
        RefereeReveal.encode,
        (ProtocolError,),
        (RefereeReveal(3, {2: {0: WORDS.own, 2: WORDS.following}, 4: {1: WORDS.own}}).encode(),),
        canonical=True,
    ),
    "sum-parts": Target(
        decode_parts,
        encode_parts,
        (ProtocolError,),
        (encode_parts([b"\1" * 32, b"\2" * 32]),),
        True,
    ),
    "sum-judged": Target(
        decode_judged,
        encode_judged,
        (ProtocolError,),
        (encode_judged({0: b"\1" * 32, 2: b"\2" * 32}), encode_judged({})),
        canonical=True,
    ),
    "published-answers": Target(
        lambda data: decode_rounds(data.decode("utf-8", "surrogateescape")),
        encode_published,
        (AnswersInvalid,),
        (PUBLISHED, PUBLISHED + PUBLISHED),
        findings=(b"[" * 10_000 + b"\n",),
    ),
    "hand-over": Target(
        lambda data: HandOver.decode(data, 2),
        HandOver.encode,
        (ProtocolError,),
        (KEYS_HANDED.encode(), HandOver({}).encode()),
        canonical=True,
    ),
    "disputed-component": Target(
        DisputedComponent.decode,
        DisputedComponent.encode,
        (ProtocolError,),
        (DISPUTED.encode(),),
        findings=(b"[" * 10_000, b"null", DISPUTED.encode().replace(b"[[2", b"[[true")),
    ),
    "handed-keys": Target(
        decode_handed_keys,
        encode_handed_keys,
        (ProtocolError,),
        (
            encode_handed_keys(
                HandedKey(kind, 3, b"\1" * 32, k, b"\2" * 32) for k, kind in enumerate(BundleKind)
            ),
            b"",
        ),
        canonical=True,
        findings=(bytes(70), b"\1" * 69, b"\1" + bytes(36) + b"\3" + bytes(32)),
    ),
    "results": Target(
        Results.decode,
        encode_results,
        (ProtocolError,),
        (Results(frozenset({0, 9})).encode(), Results(frozenset()).encode(), Results.ABORTED),
        canonical=True,
    ),
    "audit-message-of-a-peer": Target(
        decode_message,
        encode_message,
        (TransportError,),
        (encode_message((b"body", bytes(65))),),
        findings=(b'{"body": "\\ud800"}', b"[" * 100_000, b'{"body": "0x", "signature": "0x00"}'),
    ),
}
