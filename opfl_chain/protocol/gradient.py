"""Commitments of the scheme ``shares``, to gradients and to inputs alike.

The ring words are split as x = x0 + x1 + x2 modulo 2^64 and each component is committed to on its
own, as it is sent, so that a member checks what it received without seeing the rest. x0 and x1 are
sent as seeds: to hash these binds as much as to hash all words that they expand into. Shares are
hashed with SHA-256: there are megabytes of them, and no contract reads them.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final

from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.hashing import TAG_GRADIENT, TAG_INPUT, TAG_SHARE, keccak256, sha256
from opfl_chain.protocol.ring import RING_WORD_BYTES
from opfl_chain.protocol.widths import bytes32, unsigned_bytes

COMPONENTS: Final = 3
SENT_AS_WORDS: Final = 2
"""The component that is sent as words. The others are sent as seeds."""
SEED_BYTES: Final = 32


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


def share_hash(component_index: int, salt: bytes, sent: bytes) -> bytes:
    """Commit to one component under a secret salt: to its seed, or to its words, little-endian."""
    if not 0 <= component_index < COMPONENTS:
        raise ProtocolError(f"component {component_index} does not exist: there are 0, 1 and 2")
    if component_index != SENT_AS_WORDS:
        bytes32(f"seed of component {component_index}", sent)
    elif not sent or len(sent) % RING_WORD_BYTES:
        raise ProtocolError(
            f"component {component_index} has {len(sent)} bytes,"
            f" it must be one or more whole words of {RING_WORD_BYTES} bytes"
        )
    index = unsigned_bytes("component index", component_index, 8)
    return sha256(TAG_SHARE, index, bytes32("salt", salt), sent)


def shares_commitment(subject: Subject, share_hashes: Sequence[bytes]) -> bytes:
    """Commit to a gradient or an input by the hashes of its three components."""
    if len(share_hashes) != COMPONENTS:
        raise ProtocolError(f"a commitment has {COMPONENTS} share hashes, got {len(share_hashes)}")
    hashes = [bytes32(f"share hash {k}", value) for k, value in enumerate(share_hashes)]
    return keccak256(subject.tag, *hashes)
