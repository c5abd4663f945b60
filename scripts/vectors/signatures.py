"""Signatures of one digest that are accepted, and their forms forms that are not."""

from eth_account import Account

from vectors.made_up import words
from vectors.specification import spec
from vectors.values import Vector


def signatures() -> Vector:
    n = spec.CURVE_ORDER
    cases = []
    for key, digest in zip(words("signer", 3), words("digest", 3), strict=True):
        signer = Account.from_key(key)
        made = signer.unsafe_sign_hash(digest)
        r, s, v = made.r, made.s, made.v
        forms = [
            encoded(r, s, v),
            encoded(r, n - s, 55 - v),
            encoded(r, s, v - 27),
            encoded(0, s, v),
            encoded(n, s, v),
            encoded(r, 0, v),
            encoded(r, n, v),
            encoded(r, s, v)[:64],
            encoded(r, s, v) + b"\0",
        ]
        address = bytes.fromhex(signer.address[2:])
        cases += [(digest, address, signature) for signature in forms]
    return {
        "canonical": [spec.is_canonical_signature(signature) for _, _, signature in cases],
        "digests": [digest for digest, _, _ in cases],
        "signatures": [signature for _, _, signature in cases],
        "signers": [signer for _, signer, _ in cases],
    }


def encoded(r: int, s: int, v: int) -> bytes:
    return r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([v])
