"""Audit randomness: the signed messages, the seed of a round, and the clients that it selects.

Points are in the encoding of EIP-2537: 128 bytes in G1 (signatures), 256 in G2 (keys).
"""

from fractions import Fraction
from typing import Final

from opfl_chain.protocol import abi
from opfl_chain.protocol.errors import SamplingError
from opfl_chain.protocol.hashing import TAG_BEACON, TAG_PROOF_OF_POSSESSION, TAG_SEED, keccak256
from opfl_chain.protocol.identifiers import Address, JobId, RoundNumber
from opfl_chain.protocol.widths import fixed_bytes

SIGNATURE_DST: Final = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_"
PROOF_OF_POSSESSION_DST: Final = b"BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_"
SIGNATURE_BYTES: Final = 128
PUBLIC_KEY_BYTES: Final = 256
AUDIT_ALWAYS: Final = 1 << 64
"""The audit rate at which every client is audited in every round."""


def beacon_message(
    chain_id: int,
    beacon: Address,
    job: JobId,
    round_: RoundNumber,
    opening: bytes,
    root: bytes,
) -> bytes:
    """Return the message every member signs once the roll of a round is on chain."""
    return abi.abi_encode(
        abi.word("tag", TAG_BEACON),
        abi.uint("chain id", chain_id, 256),
        abi.address("beacon", beacon),
        abi.job_id(job),
        abi.round_number(round_),
        abi.word("opening", opening),
        abi.word("root of the roll", root),
    )


def proof_of_possession_message(
    chain_id: int, beacon: Address, member: Address, public_key: bytes
) -> bytes:
    """Return the message a member signs to prove that it holds the secret of ``public_key``."""
    return abi.abi_encode(
        abi.word("tag", TAG_PROOF_OF_POSSESSION),
        abi.uint("chain id", chain_id, 256),
        abi.address("beacon", beacon),
        abi.address("member", member),
        abi.byte_string(fixed_bytes("public key", public_key, PUBLIC_KEY_BYTES)),
    )


def seed_of_signature(signature: bytes) -> bytes:
    """Return the audit seed, derived from the aggregate signature of a round."""
    return keccak256(TAG_SEED, fixed_bytes("signature", signature, SIGNATURE_BYTES))


def audit_rate_of(probability: float | Fraction) -> int:
    """Return the audit rate nearest to a probability."""
    if not 0 <= probability <= 1:
        raise SamplingError(f"audit probability is {probability}, it must be in [0, 1]")
    return round(Fraction(probability) * AUDIT_ALWAYS)


def probability_of(audit_rate: int) -> Fraction:
    """Return the exact probability of an audit at ``audit_rate``."""
    return Fraction(_checked_rate(audit_rate), AUDIT_ALWAYS)


def audit_ticket(seed: bytes, client: Address) -> int:
    """Draw the client's 64-bit ticket, which no other client influences."""
    digest = keccak256(abi.abi_encode(abi.word("seed", seed), abi.address("client", client)))
    return int.from_bytes(digest[:8], "big")


def is_audited(seed: bytes, client: Address, audit_rate: int) -> bool:
    """Return whether ``seed`` selects ``client``."""
    return audit_ticket(seed, client) < _checked_rate(audit_rate)


def _checked_rate(audit_rate: int) -> int:
    if not 0 <= audit_rate <= AUDIT_ALWAYS:
        raise SamplingError(
            f"audit rate is {audit_rate}, it must be in [0, 2^64], where 2^64 is always"
        )
    return audit_rate
