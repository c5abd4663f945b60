"""Sealing keys, proofs of knowledge and complaints, and the forms of them that are refused."""

from __future__ import annotations

import pytest
from coincurve import PublicKey

from opfl_chain.protocol.errors import SealingError
from opfl_chain.protocol.sealing import (
    COMPLAINT_BYTES,
    KNOWLEDGE_BYTES,
    Complaint,
    SealingKey,
    derived_key,
    file_complaint,
    is_point,
    knows_secret,
    prove_knowledge,
    verify_complaint,
)
from opfl_chain.protocol.signatures import CURVE_ORDER

CONTEXT, ELSEWHERE = b"c" * 32, b"e" * 32
MEMBER = derived_key(b"m" * 32, b"member")
CLIENT = derived_key(b"s" * 32, b"client")


def flipped(data: bytes, bit: int) -> bytes:
    return (int.from_bytes(data, "big") ^ 1 << bit).to_bytes(len(data), "big")


def test_both_sides_compute_the_same_shared_point() -> None:
    assert MEMBER.shared_point(CLIENT.public) == CLIENT.shared_point(MEMBER.public)


@pytest.mark.parametrize("scalar", [0, CURVE_ORDER, 2**256 - 1])
def test_a_scalar_out_of_range_is_refused(scalar: int) -> None:
    with pytest.raises(SealingError, match="scalar"):
        SealingKey(scalar.to_bytes(32, "big"))


def test_other_forms_of_a_point_are_refused() -> None:
    point = PublicKey(MEMBER.public)
    hybrid = bytes([6 + point.format(compressed=False)[64] % 2]) + point.format(False)[1:]
    field = 2**256 - 2**32 - 977
    beyond = b"\2" + (field + 1).to_bytes(32, "big")  # x = 1 is on the curve, p + 1 is its twin
    for form in (point.format(compressed=False), hybrid, bytes(33), b"", b"\2" + b"\5" * 32):
        assert not is_point(form)
    assert is_point(b"\2" + (1).to_bytes(32, "big")) and not is_point(beyond)


def test_a_proof_of_knowledge_holds_in_its_context_alone() -> None:
    proof = prove_knowledge(CLIENT, CONTEXT)
    assert len(proof) == KNOWLEDGE_BYTES
    assert knows_secret(CLIENT.public, proof, CONTEXT)
    assert not knows_secret(CLIENT.public, proof, ELSEWHERE)
    assert not knows_secret(MEMBER.public, proof, CONTEXT)
    assert prove_knowledge(CLIENT, CONTEXT) == proof


def test_a_tampered_proof_of_knowledge_is_refused() -> None:
    proof = prove_knowledge(CLIENT, CONTEXT)
    for bit in range(0, 8 * len(proof), 7):
        assert not knows_secret(CLIENT.public, flipped(proof, bit), CONTEXT)
    response = int.from_bytes(proof[33:], "big") + CURVE_ORDER
    if response < 2**256:
        assert not knows_secret(CLIENT.public, proof[:33] + response.to_bytes(32), CONTEXT)
    for wrong in (b"", proof[:-1], proof + b"\0", proof[:33] + bytes(32), bytes(65)):
        assert not knows_secret(CLIENT.public, wrong, CONTEXT)


def test_a_complaint_shows_the_shared_point_of_one_bundle() -> None:
    complaint = file_complaint(MEMBER, 1, CLIENT.public, CONTEXT)
    assert complaint.shared_point == CLIENT.shared_point(MEMBER.public)
    assert verify_complaint(complaint, MEMBER.public, CLIENT.public, CONTEXT)
    assert not verify_complaint(complaint, MEMBER.public, CLIENT.public, ELSEWHERE)
    assert not verify_complaint(complaint, CLIENT.public, CLIENT.public, CONTEXT)
    assert not verify_complaint(complaint, MEMBER.public, MEMBER.public, CONTEXT)
    assert not verify_complaint(complaint, bytes(33), CLIENT.public, CONTEXT)
    assert Complaint.decode(complaint.encode()) == complaint


def test_a_tampered_complaint_is_refused() -> None:
    encoded = file_complaint(MEMBER, 1, CLIENT.public, CONTEXT).encode()
    assert len(encoded) == COMPLAINT_BYTES
    for bit in range(0, 8 * (len(encoded) - 1), 5):  # all but the seat, which nothing signs here
        try:
            complaint = Complaint.decode(flipped(encoded, bit))
        except SealingError:
            continue
        assert not verify_complaint(complaint, MEMBER.public, CLIENT.public, CONTEXT)


@pytest.mark.parametrize("seat", [3, 255])
def test_a_complaint_of_no_seat_is_refused(seat: int) -> None:
    encoded = file_complaint(MEMBER, 1, CLIENT.public, CONTEXT).encode()
    with pytest.raises(SealingError, match="seat"):
        Complaint.decode(bytes([seat]) + encoded[1:])
