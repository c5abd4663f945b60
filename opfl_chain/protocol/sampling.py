"""Which clients the seed of a round selects for audit."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Final

from opfl_chain.protocol.abi import abi_encode, address, word
from opfl_chain.protocol.errors import SamplingError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address

AUDIT_ALWAYS: Final = 1 << 64
"""The audit rate at which every client is audited in every round."""


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
    digest = keccak256(abi_encode(word("seed", seed), address("client", client)))
    return int.from_bytes(digest[:8], "big")


def is_audited(seed: bytes, client: Address, audit_rate: int) -> bool:
    """Whether ``seed`` selects ``client``."""
    return audit_ticket(seed, client) < _checked_rate(audit_rate)


def audited_clients(
    seed: bytes, clients: Iterable[Address], audit_rate: int
) -> tuple[Address, ...]:
    """Return the clients that ``seed`` selects, in the order given."""
    return tuple(client for client in clients if is_audited(seed, client, audit_rate))


def _checked_rate(audit_rate: int) -> int:
    if not 0 <= audit_rate <= AUDIT_ALWAYS:
        raise SamplingError(
            f"audit rate is {audit_rate}, it must be in [0, 2^64], where 2^64 is always"
        )
    return audit_rate
