"""What members sign for audit randomness, and the seed that comes of it.

Points are in the encoding of EIP-2537: 128 bytes in G1 (signatures), 256 in G2 (keys).
"""

from typing import Final

from opfl_chain.protocol.abi import (
    abi_encode,
    address,
    byte_string,
    bytes28,
    job_id,
    round_number,
    uint,
    word,
)
from opfl_chain.protocol.hashing import (
    TAG_BEACON,
    TAG_PROOF_OF_POSSESSION,
    TAG_SEED,
    keccak256,
)
from opfl_chain.protocol.identifiers import Address, JobId, RoundNumber
from opfl_chain.protocol.widths import fixed_bytes

SIGNATURE_DST: Final = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_"
PROOF_OF_POSSESSION_DST: Final = b"BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_"
SIGNATURE_BYTES: Final = 128
PUBLIC_KEY_BYTES: Final = 256


def beacon_message(
    chain_id: int, beacon: Address, job: JobId, round_: RoundNumber, accumulator: bytes
) -> bytes:
    """Return what every member signs once the commitments of a round are closed."""
    return abi_encode(
        word("tag", TAG_BEACON),
        uint("chain id", chain_id, 256),
        address("beacon", beacon),
        job_id(job),
        round_number(round_),
        bytes28("accumulator", accumulator),
    )


def proof_of_possession_message(
    chain_id: int, beacon: Address, member: Address, public_key: bytes
) -> bytes:
    """Return what a member signs to show that it holds the secret of ``public_key``."""
    return abi_encode(
        word("tag", TAG_PROOF_OF_POSSESSION),
        uint("chain id", chain_id, 256),
        address("beacon", beacon),
        address("member", member),
        byte_string(fixed_bytes("public key", public_key, PUBLIC_KEY_BYTES)),
    )


def seed_of_signature(signature: bytes) -> bytes:
    """Return the audit seed that the aggregate signature of a round gives."""
    return keccak256(TAG_SEED, fixed_bytes("signature", signature, SIGNATURE_BYTES))
