from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py_arkworks_bls12381 import G1Point

from opfl_chain.chain.bls import (
    ORDER,
    POSSESSION_DST,
    PublicKey,
    SecretKey,
    Signature,
    aggregate_public_keys,
    aggregate_signatures,
    verify,
    verify_possession,
)
from opfl_chain.chain.errors import InvalidPoint, InvalidScalar

PUBLISHED = json.loads((Path(__file__).parents[1] / "vectors" / "published.json").read_text())
FIELD = int(
    "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab",
    16,
)
KEYS = st.integers(1, ORDER - 1).map(lambda secret: SecretKey(secret.to_bytes(32, "big")))


def unhex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def eip2537_g1(x: int, y: int) -> bytes:
    return x.to_bytes(64, "big") + y.to_bytes(64, "big")


def test_drand_quicknet_rounds_verify() -> None:
    drand: dict[str, Any] = PUBLISHED["drandQuicknet"]
    key = PublicKey.from_compressed(unhex(drand["publicKeyCompressed"]))
    assert key.eip2537() == unhex(drand["publicKey"])
    for round_number, message, signature, compressed, randomness in zip(
        drand["rounds"],
        drand["messages"],
        drand["signatures"],
        drand["signaturesCompressed"],
        drand["randomness"],
        strict=True,
    ):
        published = Signature.from_compressed(unhex(compressed))
        assert hashlib.sha256(round_number.to_bytes(8, "big")).digest() == unhex(message)
        assert published.eip2537() == unhex(signature)
        assert published == Signature.from_eip2537(unhex(signature))
        assert hashlib.sha256(unhex(compressed)).digest() == unhex(randomness)
        assert verify(key, unhex(message), published, unhex(drand["dst"]))
        assert not verify(key, unhex(message), published)  # our own tag is another one


def test_hash_to_curve_matches_rfc_9380() -> None:
    rfc: dict[str, Any] = PUBLISHED["rfc9380"]
    for message, x, y in zip(rfc["messages"], rfc["xs"], rfc["ys"], strict=True):
        point = G1Point.hash_to_curve(unhex(message), unhex(rfc["dst"]))
        assert bytes(point.to_xy_bytes_be()) == unhex(x)[-48:] + unhex(y)[-48:]


@settings(max_examples=20)
@given(key=KEYS, message=st.binary(max_size=100))
def test_a_signature_verifies_and_survives_both_encodings(key: SecretKey, message: bytes) -> None:
    signature = key.sign(message)
    assert verify(key.public_key, message, signature)
    assert not verify(key.public_key, message + b"x", signature)
    assert Signature.from_eip2537(signature.eip2537()) == signature
    assert Signature.from_compressed(signature.compressed()) == signature
    assert PublicKey.from_eip2537(key.public_key.eip2537()) == key.public_key
    assert SecretKey(key.to_bytes()).public_key == key.public_key


def test_three_signatures_aggregate_and_two_of_them_do_not_suffice() -> None:
    keys = [SecretKey.generate() for _ in range(3)]
    group = aggregate_public_keys([key.public_key for key in keys])
    parts = [key.sign(b"round 1") for key in keys]
    assert verify(group, b"round 1", aggregate_signatures(parts))
    assert not verify(group, b"round 1", aggregate_signatures(parts[:2]))
    assert not verify(group, b"round 2", aggregate_signatures(parts))


def test_possession_is_another_statement_than_a_signature() -> None:
    key = SecretKey.generate()
    proof = key.prove_possession(b"statement")
    assert verify_possession(key.public_key, b"statement", proof)
    assert not verify_possession(key.public_key, b"other statement", proof)
    assert not verify_possession(SecretKey.generate().public_key, b"statement", proof)
    assert not verify(key.public_key, b"statement", proof)
    assert proof == key.sign(b"statement", POSSESSION_DST)


def outside_the_subgroup() -> bytes:
    x = next(x for x in range(1, 100) if pow(x**3 + 4, (FIELD - 1) // 2, FIELD) == 1)
    return eip2537_g1(x, pow(x**3 + 4, (FIELD + 1) // 4, FIELD))


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param(bytes(128), id="infinity"),
        pytest.param(eip2537_g1(1, 1), id="off the curve"),
        pytest.param(outside_the_subgroup(), id="outside the subgroup"),
        pytest.param(eip2537_g1(FIELD, 2), id="not canonical"),
        pytest.param(b"\xff" * 128, id="padding not zero"),
        pytest.param(bytes(127), id="too short"),
        pytest.param(b"", id="empty"),
    ],
)
def test_bytes_that_are_no_point_of_g1_are_refused(encoded: bytes) -> None:
    with pytest.raises(InvalidPoint):
        Signature.from_eip2537(encoded)


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param(bytes(256), id="infinity"),
        pytest.param((1).to_bytes(64, "big") * 4, id="off the curve"),
        pytest.param(bytes(128), id="too short"),
    ],
)
def test_bytes_that_are_no_point_of_g2_are_refused(encoded: bytes) -> None:
    with pytest.raises(InvalidPoint):
        PublicKey.from_eip2537(encoded)


@pytest.mark.parametrize("encoded", [b"\xc0" + bytes(47), bytes(48), b"\x80" + bytes(46), b""])
def test_compressed_bytes_that_are_no_point_are_refused(encoded: bytes) -> None:
    with pytest.raises(InvalidPoint):
        Signature.from_compressed(encoded)


@given(st.binary(max_size=200))
def test_random_bytes_are_never_a_point_by_accident(encoded: bytes) -> None:
    with pytest.raises(InvalidPoint):
        Signature.from_eip2537(encoded)


def test_points_that_cancel_out_are_refused() -> None:
    key = SecretKey.generate()
    rogue = PublicKey(-key.public_key.point)
    with pytest.raises(InvalidPoint, match="rogue"):
        aggregate_public_keys([key.public_key, rogue])
    with pytest.raises(InvalidPoint, match="at least one"):
        aggregate_signatures([])


@pytest.mark.parametrize("secret", [bytes(32), ORDER.to_bytes(32, "big"), b"\xff" * 32, b"short"])
def test_scalars_outside_the_group_order_are_refused(secret: bytes) -> None:
    with pytest.raises(InvalidScalar, match="generate"):
        SecretKey(secret)


def test_a_secret_key_does_not_show_itself() -> None:
    key = SecretKey.generate()
    assert key.to_bytes().hex() not in f"{key!r} {key}"
