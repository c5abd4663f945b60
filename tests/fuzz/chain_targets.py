"""Points of BLS12-381, which anybody can register or publish."""

from __future__ import annotations

from fuzz_target import Target

from opfl_chain.chain.bls import PublicKey, SecretKey, Signature
from opfl_chain.chain.errors import InvalidPoint

KEY = SecretKey(b"\7" * 32)

CHAIN_TARGETS = {
    "signature": Target(
        Signature.from_compressed,
        Signature.compressed,
        (InvalidPoint,),
        (KEY.sign(b"message").compressed(),),
        canonical=True,
    ),
    "signature-on-chain": Target(
        Signature.from_eip2537,
        Signature.eip2537,
        (InvalidPoint,),
        (KEY.sign(b"message").eip2537(),),
        canonical=True,
    ),
    "public-key": Target(
        PublicKey.from_compressed,
        PublicKey.compressed,
        (InvalidPoint,),
        (KEY.public_key.compressed(),),
        canonical=True,
    ),
    "public-key-on-chain": Target(
        PublicKey.from_eip2537,
        PublicKey.eip2537,
        (InvalidPoint,),
        (KEY.public_key.eip2537(),),
        canonical=True,
    ),
}
