"""The delivery of a contribution to one member, and the checks that this member does alone."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from opfl_chain.protocol.commitments import SALT_WORDS, Scheme, Subject
from opfl_chain.protocol.errors import DeliveryMissing, InputNotCommitted, ProtocolError, ShareError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import ClientIndex, RoundNumber
from opfl_chain.protocol.inputs import is_input_of_round
from opfl_chain.protocol.proof.package import ProofForm, ProofLeaves, ProofPackage
from opfl_chain.protocol.ring import RING_WORD_BYTES, UnsignedWords
from opfl_chain.protocol.shares import HASH_BYTES, SharePackage, verify_components, verify_package
from opfl_chain.protocol.verdict import FaultReason
from opfl_chain.protocol.widths import bytes32

Held = tuple[UnsignedWords, UnsignedWords]
"""The two components of a secret vector that a member holds."""
MAGIC: Final = b"OPFD"
VERSION: Final = 1
MOST_PROOF_NODES: Final = 32
"""The longest proof: round numbers have 32 bits, and a data set has one input per round."""
_HEADER: Final = struct.Struct(">4sBQQQ")
"""Magic, version, and the sizes of the gradient, the input, and the advice or proof in bytes."""


@dataclass(frozen=True)
class Claim:
    """The on-chain facts about a contribution."""

    client: ClientIndex
    round_number: RoundNumber
    commitment: bytes
    """The commitment to the gradient."""
    dataset_root: bytes
    audited: bool


@dataclass(frozen=True)
class InputDelivery:
    """The training input of an audited contribution, and its place in the data set."""

    package: SharePackage
    commitment: bytes
    proof: tuple[bytes, ...]


@dataclass(frozen=True)
class Delivery:
    """The parts of a contribution that one member received."""

    gradient: SharePackage
    training_input: InputDelivery | None = None
    advice: SharePackage | None = None
    """Present if the replay is guided. No commitment binds it; the replay checks its content."""
    proof: ProofPackage | None = None
    """Present if the step is proved, instead of advice."""


@dataclass(frozen=True)
class Expected:
    """The expected delivery to the member of this rank. Word counts exclude the salt."""

    scheme: Scheme
    rank: int
    gradient_words: int
    input_words: int
    advice_words: int = 0
    """Absent unless the replay is guided."""
    proof: ProofForm | None = None
    """Absent unless steps are proved."""

    def package_words(self, words: int) -> int:
        """Return the number of shared words: in the scheme ``mpc`` the salt is shared as well."""
        return words + SALT_WORDS if self.scheme is Scheme.MPC else words


@dataclass(frozen=True)
class Checked:
    """The components of a delivery in which this member found no fault."""

    gradient: Held
    training_input: Held | None
    advice: Held | None
    proof: ProofPackage | None
    leaves: bytes
    """A digest of all leaf hashes. Members compare it, so that all hold parts of one sharing."""


def check_delivery(expected: Expected, claim: Claim, delivery: Delivery | None) -> Checked:
    """Return the components of a valid delivery, or raise the fault found.

    In the scheme ``shares`` this covers gate 1 and the opening of the input. In the scheme ``mpc``
    the commitments are opened later, inside MPC.
    """
    if delivery is None:
        raise DeliveryMissing(f"client {claim.client} delivered nothing")
    gradient = _checked_components(
        expected, delivery.gradient, Subject.GRADIENT, claim.commitment, expected.gradient_words
    )
    packages = [delivery.gradient]
    training_input = advice = None
    if claim.audited:
        if delivery.training_input is None:
            raise DeliveryMissing(f"client {claim.client} is audited and delivered no input")
        training_input = _checked_input(expected, claim, delivery.training_input)
        packages.append(delivery.training_input.package)
    if claim.audited and expected.advice_words:
        if delivery.advice is None:
            raise DeliveryMissing(f"client {claim.client} is audited and delivered no advice")
        _check_kind(expected, delivery.advice, "advice", expected.advice_words)
        advice = verify_components(delivery.advice)
        packages.append(delivery.advice)
    proof = None
    if claim.audited and expected.proof is not None:
        if delivery.proof is None:
            raise DeliveryMissing(f"client {claim.client} is audited and delivered no proof")
        delivery.proof.verify(expected.proof)
        proof = delivery.proof
    leaves = joint_digest(
        [leaf for package in packages for leaf in package.leaf_hashes],
        proof.leaves if proof else None,
    )
    return Checked(gradient, training_input, advice, proof, leaves)


def fault_of(error: ProtocolError) -> FaultReason:
    """Return the fault that a delivery refused with this error is charged with."""
    if isinstance(error, DeliveryMissing):
        return FaultReason.NOT_DELIVERED
    if isinstance(error, InputNotCommitted):
        return FaultReason.INPUT_NOT_COMMITTED
    return FaultReason.COMMITMENT_MISMATCH


def joint_digest(leaf_hashes: Sequence[bytes], proof: ProofLeaves | None) -> bytes:
    """Return a digest of all leaf hashes: those of the packages in order, and of the proof."""
    digest = keccak256(*leaf_hashes)
    return keccak256(digest, proof.digest) if proof is not None else digest


def _checked_input(expected: Expected, claim: Claim, delivered: InputDelivery) -> Held:
    t = claim.round_number
    proof = [bytes32(f"proof[{i}]", node) for i, node in enumerate(delivered.proof)]
    if not is_input_of_round(claim.dataset_root, t, delivered.commitment, proof):
        raise InputNotCommitted(
            f"input 0x{delivered.commitment.hex()} of client {claim.client} is not the input of"
            f" round {t} in the data set 0x{claim.dataset_root.hex()}"
        )
    return _checked_components(
        expected, delivered.package, Subject.INPUT, delivered.commitment, expected.input_words
    )


def _checked_components(
    expected: Expected, package: SharePackage, subject: Subject, commitment: bytes, words: int
) -> Held:
    _check_kind(expected, package, subject.name.lower(), expected.package_words(words))
    if expected.scheme is Scheme.SHARES:
        return verify_package(package, subject, commitment)
    return verify_components(package)


def _check_kind(expected: Expected, package: SharePackage, name: str, words: int) -> None:
    found = package.scheme, package.rank, package.count
    if found != (expected.scheme, expected.rank, words):
        raise ShareError(
            f"{name} package is of scheme {package.scheme.value}, for member {package.rank},"
            f" with {package.count:,} words; expected: scheme {expected.scheme.value},"
            f" member {expected.rank}, {words:,} words"
        )


def encode_delivery(delivery: Delivery) -> bytes:
    """Encode header, package of the gradient, and if given the input, and the advice or proof."""
    parts = [
        delivery.gradient.encode(),
        _encode_input(delivery.training_input) if delivery.training_input else b"",
        _encode_last(delivery),
    ]
    return b"".join([_HEADER.pack(MAGIC, VERSION, *map(len, parts)), *parts])


def decode_delivery(data: bytes, expected: Expected) -> Delivery:
    """Decode a delivery to the member that ``expected`` describes."""
    if len(data) < _HEADER.size:
        raise ShareError(f"a delivery has at least {_HEADER.size} bytes, this one has {len(data)}")
    magic, version, *sizes = _HEADER.unpack_from(data)
    if (magic, version) != (MAGIC, VERSION):
        raise ShareError(
            f"a delivery starts with {MAGIC!r} and version {VERSION}, not {magic!r} and {version}"
        )
    ends = list(accumulate(sizes, initial=_HEADER.size))
    if len(data) != ends[-1]:
        raise ShareError(f"delivery has {len(data):,} bytes, its header says {ends[-1]:,}")
    gradient, training_input, last = (data[start:end] for start, end in pairwise(ends))
    advice = proof = None
    if last and expected.proof is not None:
        proof = ProofPackage.decode(last, expected.proof, expected.rank)
    elif last:
        advice = _decode_package(last, expected, expected.advice_words)
    return Delivery(
        _decode_package(gradient, expected, expected.package_words(expected.gradient_words)),
        _decode_input(training_input, expected) if training_input else None,
        advice,
        proof,
    )


def largest_delivery(expected: Expected) -> int:
    """Return the maximum size of a valid delivery in bytes; readers may stop there."""
    gradient = _largest_package(expected.package_words(expected.gradient_words))
    training_input = 1 + HASH_BYTES * (1 + MOST_PROOF_NODES)
    training_input += _largest_package(expected.package_words(expected.input_words))
    last = _largest_package(expected.advice_words)
    if expected.proof is not None:
        last = expected.proof.largest_package
    return _HEADER.size + gradient + training_input + last


def _encode_last(delivery: Delivery) -> bytes:
    given = delivery.proof or delivery.advice
    return given.encode() if given else b""


def _encode_input(given: InputDelivery) -> bytes:
    """Encode the number of nodes of the proof, the commitment, the proof and the package."""
    if len(given.proof) > MOST_PROOF_NODES:
        raise ShareError(_proof_too_long(len(given.proof)))
    commitment = bytes32("commitment to the input", given.commitment)
    proof = [bytes32(f"proof[{i}]", node) for i, node in enumerate(given.proof)]
    return b"".join([bytes([len(proof)]), commitment, *proof, given.package.encode()])


def _decode_input(data: bytes, expected: Expected) -> InputDelivery:
    nodes = data[0]
    if nodes > MOST_PROOF_NODES:
        raise ShareError(_proof_too_long(nodes))
    package_at = 1 + HASH_BYTES * (1 + nodes)
    if len(data) < package_at:
        raise ShareError(
            f"delivered input is truncated within its proof: the commitment and {nodes} nodes take"
            f" {package_at:,} bytes, it has {len(data):,}"
        )
    commitment, *proof = (data[at : at + HASH_BYTES] for at in range(1, package_at, HASH_BYTES))
    words = expected.package_words(expected.input_words)
    package = _decode_package(data[package_at:], expected, words)
    return InputDelivery(package, commitment, tuple(proof))


def _decode_package(data: bytes, expected: Expected, words: int) -> SharePackage:
    return SharePackage.decode(data, expected.scheme, expected.rank, words)


def _largest_package(words: int) -> int:
    """Bound a package: one component as words; header, hashes, salts and seeds below 256 bytes."""
    return 256 + RING_WORD_BYTES * words


def _proof_too_long(nodes: int) -> str:
    return f"proof of the delivered input has {nodes} nodes, at most {MOST_PROOF_NODES} are allowed"
