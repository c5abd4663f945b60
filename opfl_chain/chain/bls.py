"""BLS signatures on BLS12-381 with signatures in G1 and public keys in G2.

A signature is unique for its key and message, so the audit beacon cannot be ground. Points have
two encodings: EIP-2537 (for contracts) and compressed (48 and 96 bytes, the usual published form).
Decoding refuses points off the curve, outside the prime-order subgroup or at infinity, so that
objects of these classes are always safe to use.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, ClassVar, Generic, Self, TypeVar

from py_arkworks_bls12381 import GT, G1Point, G2Point, Scalar

from opfl_chain.chain.errors import InvalidPoint, InvalidScalar

SIGNATURE_DST = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_"
POSSESSION_DST = b"BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_"
ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001

_FIELD_BYTES = 48
_PADDING = bytes(16)  # EIP-2537 writes a field element in 64 bytes
_NEGATED_G2 = -G2Point()
P = TypeVar("P", G1Point, G2Point)


@dataclass(frozen=True, eq=False)
class _Point(Generic[P]):
    point: P
    group: ClassVar[str]
    kind: ClassVar[type[G1Point] | type[G2Point]]
    elements: ClassVar[int]

    @classmethod
    def from_eip2537(cls, encoded: bytes) -> Self:
        raw = _strip(encoded, cls.elements, cls.group)
        return cls._checked(encoded, lambda: cls.kind.from_xy_bytes_be(raw))

    @classmethod
    def from_compressed(cls, encoded: bytes) -> Self:
        return cls._checked(encoded, lambda: cls.kind.from_compressed_bytes(encoded))

    @classmethod
    def _checked(cls, encoded: bytes, decode: Callable[[], Any]) -> Self:
        try:
            point = decode()
        except ValueError as error:
            raise InvalidPoint(
                f"0x{encoded.hex()} is not a point of {cls.group}: off the curve, outside the "
                f"subgroup or not canonical ({error})"
            ) from error
        if _is_infinity(point):
            raise InvalidPoint(f"the point at infinity of {cls.group} is not a key or signature")
        return cls(point)

    def eip2537(self) -> bytes:
        return _pad(bytes(self.point.to_xy_bytes_be()))

    def compressed(self) -> bytes:
        return bytes(self.point.to_compressed_bytes())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.point == other.point

    def __hash__(self) -> int:
        return hash(self.compressed())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(0x{self.compressed().hex()})"


class Signature(_Point[G1Point]):
    """A signature, a member's share of an aggregate, or a proof of possession."""

    group, kind, elements = "G1", G1Point, 2


class PublicKey(_Point[G2Point]):
    """One member's key, or the sum of several."""

    group, kind, elements = "G2", G2Point, 4


class SecretKey:
    """A secret key, whose `repr` shows only the public key."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) != 32 or not 0 < int.from_bytes(secret, "big") < ORDER:
            raise InvalidScalar(
                f"a BLS secret key is 32 big-endian bytes of a number between 1 and the group "
                f"order; got {len(secret)} other bytes. Use SecretKey.generate()."
            )
        self._scalar = Scalar.from_be_bytes(secret)
        self.public_key = PublicKey(G2Point() * self._scalar)

    @staticmethod
    def generate() -> SecretKey:
        return SecretKey((1 + secrets.randbelow(ORDER - 1)).to_bytes(32, "big"))

    def to_bytes(self) -> bytes:
        return bytes(self._scalar.to_be_bytes())

    def sign(self, message: bytes, dst: bytes = SIGNATURE_DST) -> Signature:
        return Signature(G1Point.hash_to_curve(message, dst) * self._scalar)

    def prove_possession(self, statement: bytes) -> Signature:
        """Sign a registration's statement, under a domain tag that no other signature uses."""
        return self.sign(statement, POSSESSION_DST)

    def __repr__(self) -> str:
        return f"SecretKey(public_key=0x{self.public_key.compressed().hex()})"


def verify(
    public_key: PublicKey, message: bytes, signature: Signature, dst: bytes = SIGNATURE_DST
) -> bool:
    """Check e(signature, G2) = e(H(message), public key); one pairing check, about 2 ms."""
    if _is_infinity(signature.point) or _is_infinity(public_key.point):
        return False
    return GT.pairing_check(
        [signature.point, G1Point.hash_to_curve(message, dst)], [_NEGATED_G2, public_key.point]
    )


def verify_possession(public_key: PublicKey, statement: bytes, proof: Signature) -> bool:
    return verify(public_key, statement, proof, POSSESSION_DST)


def aggregate_signatures(signatures: Sequence[Signature]) -> Signature:
    """Sum signatures of one message; the sum of the public keys verifies the result."""
    return Signature(_sum([signature.point for signature in signatures], "signatures"))


def aggregate_public_keys(public_keys: Sequence[PublicKey]) -> PublicKey:
    """Sum keys that have proofs of possession; without them a key could cancel others."""
    return PublicKey(_sum([key.point for key in public_keys], "public keys"))


def _sum(points: Sequence[P], what: str) -> P:
    if not points:
        raise InvalidPoint(f"no {what} to aggregate: give at least one")
    total = reduce(add, points)
    if _is_infinity(total):
        raise InvalidPoint(f"the {what} sum to the point at infinity: one is from a rogue key")
    return total


def _is_infinity(point: G1Point | G2Point) -> bool:
    return point == type(point).identity()


def _pad(raw: bytes) -> bytes:
    return b"".join(
        _PADDING + raw[start : start + _FIELD_BYTES] for start in range(0, len(raw), _FIELD_BYTES)
    )


def _strip(encoded: bytes, elements: int, group: str) -> bytes:
    size = elements * (len(_PADDING) + _FIELD_BYTES)
    if len(encoded) != size:
        raise InvalidPoint(f"a point of {group} has {size} bytes in EIP-2537, not {len(encoded)}")
    parts = [encoded[start : start + 64] for start in range(0, size, 64)]
    if any(part[:16] != _PADDING for part in parts):
        raise InvalidPoint(f"a point of {group} must start every 64 bytes with 16 zero bytes")
    return b"".join(part[16:] for part in parts)
