"""Commitments of the scheme ``shares``, to gradients and to inputs alike.

The ring words are split as x = x0 + x1 + x2 modulo 2^64 and each component is committed to on its
own, so that a member checks what it received without seeing the rest.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final

from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.hashing import TAG_GRADIENT, TAG_INPUT, TAG_SHARE, keccak256
from opfl_chain.protocol.ring import RING_WORD_BYTES
from opfl_chain.protocol.widths import bytes32, unsigned_bytes

COMPONENTS: Final = 3


class Scheme(Enum):
    """How a job commits to gradients and inputs. The policy names it."""

    SHARES = "shares"
    MPC = "mpc"


class Subject(Enum):
    """What a commitment is to, so that none passes for the other."""

    GRADIENT = TAG_GRADIENT
    INPUT = TAG_INPUT

    @property
    def tag(self) -> bytes:
        """The domain tag."""
        return self.value


def share_hash(component_index: int, salt: bytes, component: bytes) -> bytes:
    """Commit to one component: its ring words as little-endian bytes, under a secret salt."""
    if not 0 <= component_index < COMPONENTS:
        raise ProtocolError(f"component {component_index} does not exist: there are 0, 1 and 2")
    if not component or len(component) % RING_WORD_BYTES:
        raise ProtocolError(
            f"component {component_index} has {len(component)} bytes,"
            f" it must be one or more whole words of {RING_WORD_BYTES} bytes"
        )
    index = unsigned_bytes("component index", component_index, 8)
    return keccak256(TAG_SHARE, index, bytes32("salt", salt), component)


def shares_commitment(subject: Subject, share_hashes: Sequence[bytes]) -> bytes:
    """Commit to a gradient or an input by the hashes of its three components."""
    if len(share_hashes) != COMPONENTS:
        raise ProtocolError(f"a commitment has {COMPONENTS} share hashes, got {len(share_hashes)}")
    hashes = [bytes32(f"share hash {k}", value) for k, value in enumerate(share_hashes)]
    return keccak256(subject.tag, *hashes)


def commit_to_components(
    subject: Subject, components: Sequence[bytes], salts: Sequence[bytes]
) -> bytes:
    """Commit to a gradient or an input by its three components and their salts."""
    if len(components) != len(salts):
        raise ProtocolError(f"got {len(components)} components and {len(salts)} salts")
    if len({len(component) for component in components}) > 1:
        lengths = ", ".join(str(len(component)) for component in components)
        raise ProtocolError(f"components must be of equal length, got {lengths} bytes")
    hashes = [
        share_hash(k, salt, component)
        for k, (component, salt) in enumerate(zip(components, salts, strict=True))
    ]
    return shares_commitment(subject, hashes)
