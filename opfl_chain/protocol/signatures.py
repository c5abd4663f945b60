"""The one form of an ECDSA signature that contracts and daemons accept."""

from __future__ import annotations

from typing import Final

SIGNATURE_BYTES: Final = 65
CURVE_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""Order of secp256k1."""


def is_canonical(signature: bytes) -> bool:
    """Return whether a signature is r, s, v in 65 bytes with a low s.

    Of every signature (r, s) there is a twin (r, n - s) of the same signer. The contracts refuse
    the one with the higher s: accepted off chain, it would be evidence that is worth nothing there.
    """
    if len(signature) != SIGNATURE_BYTES:
        return False
    r, s = (int.from_bytes(signature[at : at + 32], "big") for at in (0, 32))
    return 0 < r < CURVE_ORDER and 0 < s <= CURVE_ORDER // 2 and signature[64] in (27, 28)
