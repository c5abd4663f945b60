"""The one form of a signature that counts."""

from coincurve import PrivateKey, PublicKey

from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.signatures import CURVE_ORDER, is_canonical

KEY = PrivateKey(b"k" * 32)
DIGEST = keccak256(b"what is signed")


def recovered(signature: bytes) -> bytes:
    """The signer, by a library that does not care which of both twins it gets."""
    raw = signature[:64] + bytes([signature[64] - 27])
    return PublicKey.from_signature_and_message(raw, DIGEST, hasher=None).format()


def test_the_twin_with_a_high_s_is_refused() -> None:
    """Off chain it would be the same signer's word, on chain it is worth nothing."""
    made = KEY.sign_recoverable(DIGEST, hasher=None)
    signature = made[:64] + bytes([27 + made[64]])
    s = CURVE_ORDER - int.from_bytes(signature[32:64], "big")
    twin = signature[:32] + s.to_bytes(32, "big") + bytes([55 - signature[64]])
    assert recovered(signature) == recovered(twin) == KEY.public_key.format()
    assert is_canonical(signature) and not is_canonical(twin)
