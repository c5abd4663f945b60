"""Sealing keys of members, the ephemeral key of a bundle, and the complaint about one.

A client seals body keys to a member by the Diffie-Hellman point of its ephemeral key and the
member's sealing key. A member shows this point, with a proof that it is the right one, to complain
about a bundle that does not open: everybody then sees the same. The client has proved that it knows
the secret of its ephemeral key, in the context of its bundle. So the point that a complaint shows
is one that the client could have computed alone: it opens nobody else's bundle.

Everything is derived from seeds, so that a restart yields the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from coincurve import PrivateKey, PublicKey

from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.errors import SealingError
from opfl_chain.protocol.hashing import (
    TAG_ENVELOPE,
    TAG_KNOWLEDGE,
    TAG_SAME_SECRET,
    TAG_SEALING_SECRET,
    sha256,
)
from opfl_chain.protocol.signatures import CURVE_ORDER
from opfl_chain.protocol.widths import bytes32, unsigned_bytes

POINT_BYTES: Final = 33
SCALAR_BYTES: Final = 32
KNOWLEDGE_BYTES: Final = POINT_BYTES + SCALAR_BYTES
COMPLAINT_BYTES: Final = 1 + 3 * POINT_BYTES + SCALAR_BYTES


@dataclass(frozen=True)
class SealingKey:
    """The secret key to which clients seal a member's components."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _scalar("sealing key", self.secret)

    @property
    def public(self) -> bytes:
        """The compressed point that the member registers on chain."""
        return _times_generator(self.secret)

    def shared_point(self, other: bytes) -> bytes:
        """Return the Diffie-Hellman point with another public key."""
        return _times("ephemeral key", other, self.secret)


def derived_key(seed: bytes, *purpose: bytes) -> SealingKey:
    """Derive a key from a secret seed and a purpose, whose last part alone may vary in length."""
    return SealingKey(_hashed_scalar(TAG_SEALING_SECRET, bytes32("seed", seed), *purpose))


def is_point(data: bytes) -> bool:
    """Return whether these are the 33 bytes of a point, which is never the one at infinity."""
    try:
        _point("point", data)
    except SealingError:
        return False
    return True


def envelope_key(
    shared_point: bytes, ephemeral: bytes, component: int, seat: int, context: bytes
) -> bytes:
    """Return the mask over the key of a component, as it is sealed to the member in a seat."""
    _checked("component", component)
    _checked("seat", seat)
    return sha256(
        TAG_ENVELOPE,
        _sized("shared point", shared_point),
        _sized("ephemeral key", ephemeral),
        bytes([component, seat]),
        bytes32("context", context),
    )


def prove_knowledge(key: SealingKey, context: bytes) -> bytes:
    """Prove that one knows the secret of an ephemeral key, in one context."""
    public = key.public
    nonce = _hashed_scalar(TAG_KNOWLEDGE, b"nonce", key.secret, bytes32("context", context))
    commitment = _times_generator(nonce)
    challenge = _knowledge_challenge(context, public, commitment)
    return commitment + _response(nonce, challenge, key.secret)


def knows_secret(ephemeral: bytes, proof: bytes, context: bytes) -> bool:
    """Return whether the proof shows knowledge of the secret of an ephemeral key."""
    if len(proof) != KNOWLEDGE_BYTES:
        return False
    commitment, response = proof[:POINT_BYTES], proof[POINT_BYTES:]
    try:
        challenge = _knowledge_challenge(context, ephemeral, commitment)
        left = _times_generator(_scalar("response", response))
        return left == _sum(commitment, _times("ephemeral key", ephemeral, challenge))
    except SealingError:
        return False


@dataclass(frozen=True)
class Complaint:
    """The shared point of a member and a bundle, and the proof that both have the same secret."""

    seat: int
    shared_point: bytes
    on_generator: bytes
    """The proof's commitment on the generator, which is compared with the sealing key."""
    on_ephemeral: bytes
    """The proof's commitment on the ephemeral key, which is compared with the shared point."""
    response: bytes

    def __post_init__(self) -> None:
        _checked("seat", self.seat)
        _point("shared point", self.shared_point)
        _point("commitment on the generator", self.on_generator)
        _point("commitment on the ephemeral key", self.on_ephemeral)
        _scalar("response", self.response)

    def encode(self) -> bytes:
        """Return the wire format."""
        points = self.shared_point + self.on_generator + self.on_ephemeral
        return unsigned_bytes("seat", self.seat, 8) + points + self.response

    @classmethod
    def decode(cls, data: bytes) -> Complaint:
        """Read a complaint: canonical points and scalars only."""
        if len(data) != COMPLAINT_BYTES:
            raise SealingError(f"a complaint has {COMPLAINT_BYTES} bytes, this one has {len(data)}")
        first, second, third, last = (1 + i * POINT_BYTES for i in range(4))
        data = bytes(data)
        return cls(data[0], data[first:second], data[second:third], data[third:last], data[last:])


def file_complaint(key: SealingKey, seat: int, ephemeral: bytes, context: bytes) -> Complaint:
    """Show the shared point of a sealing key and a bundle's ephemeral key."""
    shared = key.shared_point(ephemeral)
    nonce = _hashed_scalar(
        TAG_SAME_SECRET, b"nonce", key.secret, ephemeral, bytes32("context", context)
    )
    on_generator = _times_generator(nonce)
    on_ephemeral = _times("ephemeral key", ephemeral, nonce)
    challenge = _same_secret_challenge(
        context, key.public, ephemeral, shared, on_generator, on_ephemeral
    )
    response = _response(nonce, challenge, key.secret)
    return Complaint(seat, shared, on_generator, on_ephemeral, response)


def verify_complaint(
    complaint: Complaint, sealing_key: bytes, ephemeral: bytes, context: bytes
) -> bool:
    """Return whether a complaint shows the shared point of this sealing key and ephemeral key."""
    shared, response = complaint.shared_point, complaint.response
    try:
        challenge = _same_secret_challenge(
            context, sealing_key, ephemeral, shared, complaint.on_generator, complaint.on_ephemeral
        )
        own = _sum(complaint.on_generator, _times("sealing key", sealing_key, challenge))
        both = _sum(complaint.on_ephemeral, _times("shared point", shared, challenge))
        return _times_generator(response) == own and (
            _times("ephemeral key", ephemeral, response) == both
        )
    except SealingError:
        return False


def _knowledge_challenge(context: bytes, ephemeral: bytes, commitment: bytes) -> bytes:
    return _hashed_scalar(
        TAG_KNOWLEDGE,
        b"challenge",
        bytes32("context", context),
        _sized("ephemeral key", ephemeral),
        _sized("commitment", commitment),
    )


def _same_secret_challenge(
    context: bytes,
    sealing_key: bytes,
    ephemeral: bytes,
    shared: bytes,
    on_generator: bytes,
    on_ephemeral: bytes,
) -> bytes:
    points = (sealing_key, ephemeral, shared, on_generator, on_ephemeral)
    return _hashed_scalar(
        TAG_SAME_SECRET,
        b"challenge",
        bytes32("context", context),
        *(_sized("point of the challenge", point) for point in points),
    )


def _hashed_scalar(*parts: bytes) -> bytes:
    """Hash to [1, n): n is so close to 2^256 that the bias is below 2^-127."""
    drawn = int.from_bytes(sha256(*parts), "big")
    return (drawn % (CURVE_ORDER - 1) + 1).to_bytes(SCALAR_BYTES, "big")


def _response(nonce: bytes, challenge: bytes, secret: bytes) -> bytes:
    t, c, x = (int.from_bytes(each, "big") for each in (nonce, challenge, secret))
    return ((t + c * x) % CURVE_ORDER).to_bytes(SCALAR_BYTES, "big")


def _times_generator(scalar: bytes) -> bytes:
    return PrivateKey(scalar).public_key.format()


def _times(name: str, point: bytes, scalar: bytes) -> bytes:
    return _point(name, point).multiply(scalar).format()


def _sum(first: bytes, second: bytes) -> bytes:
    points = [_point("point", first), _point("point", second)]
    try:
        return PublicKey.combine_keys(points).format()
    except ValueError:
        raise SealingError("the points add up to the one at infinity") from None


def _point(name: str, data: bytes) -> PublicKey:
    if data[:1] not in (b"\2", b"\3"):  # the library also reads uncompressed and hybrid forms
        raise SealingError(f"{name} is not a compressed point")
    try:
        return PublicKey(_sized(name, data))
    except ValueError:
        raise SealingError(f"{name} is not on the curve") from None


def _sized(name: str, data: bytes) -> bytes:
    if len(data) != POINT_BYTES:
        raise SealingError(f"{name} has {len(data)} bytes, a point has {POINT_BYTES}")
    return bytes(data)


def _scalar(name: str, data: bytes) -> bytes:
    if len(data) != SCALAR_BYTES or not 0 < int.from_bytes(data, "big") < CURVE_ORDER:
        raise SealingError(f"{name} is not a scalar of 32 bytes in [1, n)")
    return bytes(data)


def _checked(name: str, value: int) -> None:
    if not 0 <= value < COMPONENTS:
        raise SealingError(f"{name} is {value}, it must be 0, 1 or 2")
