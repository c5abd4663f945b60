"""The transcript of a proof: every random coin follows from all that was said before it.

With hashed coins (Fiat-Shamir) the client draws them itself, in one message. With tossed coins
members commit to random strings and reveal them after each stage, and the transcript takes these
in: the client then cannot try again until it likes the coins.
"""

from __future__ import annotations

from dataclasses import dataclass

from opfl_chain.numerics.field import MODULUS, Elements
from opfl_chain.numerics.projections import coin_bytes
from opfl_chain.protocol.hashing import TAG_PROOF_TRANSCRIPT, sha256
from opfl_chain.protocol.shares import key_stream


def labelled(state: bytes, label: str) -> bytes:
    """Derive a key for one purpose from a state."""
    return sha256(TAG_PROOF_TRANSCRIPT, state, label.encode())


@dataclass(frozen=True)
class Transcript:
    """The digest of everything said so far."""

    state: bytes

    @classmethod
    def start(cls, context: bytes, statement_hash: bytes) -> Transcript:
        """Start from the context, which names the contribution, and the statement."""
        return cls(sha256(TAG_PROOF_TRANSCRIPT, b"start", context, statement_hash))

    def then(self, said: bytes, tossed: bytes = b"") -> Transcript:
        """Take in what the client said, and the coins that members tossed after it."""
        return Transcript(
            sha256(TAG_PROOF_TRANSCRIPT, b"then", self.state, sha256(said), sha256(tossed))
        )

    def coins(self, label: str, elements: int, projections: int) -> bytes:
        """Draw ternary coins."""
        return key_stream(labelled(self.state, label), coin_bytes(elements, projections))

    def coefficients(self, label: str, count: int) -> Elements:
        """Draw field elements."""
        return Elements.uniform(key_stream(labelled(self.state, label), 16 * count))

    def point(self, label: str, above: int) -> int:
        """Draw a field element above the points of interpolation."""
        drawn = int.from_bytes(key_stream(labelled(self.state, label), 32), "little")
        return above + 1 + drawn % (MODULUS - above - 1)
