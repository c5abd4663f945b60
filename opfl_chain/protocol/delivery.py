"""What a client delivers of a contribution to one member, and what that member checks alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from opfl_chain.protocol.dataset import is_input_of_round
from opfl_chain.protocol.errors import DeliveryMissing, InputNotCommitted, ProtocolError, ShareError
from opfl_chain.protocol.gradient import Scheme, Subject
from opfl_chain.protocol.gradient_tree import SALT_WORDS
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import ClientIndex, RoundNumber
from opfl_chain.protocol.ring import UnsignedWords
from opfl_chain.protocol.ring_shares import SharePackage, verify_components, verify_package
from opfl_chain.protocol.verdict import FaultReason
from opfl_chain.protocol.widths import bytes32

Held = tuple[UnsignedWords, UnsignedWords]
"""The two components of a secret vector that a member holds."""


@dataclass(frozen=True)
class Claim:
    """What the chain says of a contribution."""

    client: ClientIndex
    round_number: RoundNumber
    commitment: bytes
    """To the gradient."""
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
    """What one member received of a contribution."""

    gradient: SharePackage
    training_input: InputDelivery | None = None
    advice: SharePackage | None = None
    """Where the replay is guided. No commitment binds it; the replay checks what it says."""


@dataclass(frozen=True)
class Expected:
    """What must arrive at the member of this rank. Words are counted before a salt is added."""

    scheme: Scheme
    rank: int
    gradient_words: int
    input_words: int
    advice_words: int = 0
    """None where the replay is plain."""

    def package_words(self, words: int) -> int:
        """Return how many words are shared: in the scheme ``mpc`` the salt is shared as well."""
        return words + SALT_WORDS if self.scheme is Scheme.MPC else words


@dataclass(frozen=True)
class Checked:
    """The components of a delivery in which this member found no fault."""

    gradient: Held
    training_input: Held | None
    advice: Held | None
    leaves: bytes
    """A digest of all leaf hashes. Members compare it, so that all hold parts of one sharing."""


def check_delivery(expected: Expected, claim: Claim, delivery: Delivery | None) -> Checked:
    """Return what an acceptable delivery holds, or raise what is wrong with it.

    In the scheme ``shares`` this is all of gate 1, and the opening of the input. In the scheme
    ``mpc`` the commitments are left to be opened inside MPC.
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
    return Checked(gradient, training_input, advice, leaves_digest(packages))


def fault_of(error: ProtocolError) -> FaultReason:
    """Return what a delivery that was refused with this error is charged with."""
    if isinstance(error, DeliveryMissing):
        return FaultReason.NOT_DELIVERED
    if isinstance(error, InputNotCommitted):
        return FaultReason.INPUT_NOT_COMMITTED
    return FaultReason.COMMITMENT_MISMATCH


def leaves_digest(packages: Sequence[SharePackage]) -> bytes:
    """Return a digest of what a delivery says of all three members' components."""
    return keccak256(*(leaf for package in packages for leaf in package.leaf_hashes))


def _checked_input(expected: Expected, claim: Claim, delivered: InputDelivery) -> Held:
    t = claim.round_number
    proof = [bytes32(f"proof[{i}]", node) for i, node in enumerate(delivered.proof)]
    if not is_input_of_round(claim.dataset_root, t, delivered.commitment, proof):
        raise InputNotCommitted(
            f"input 0x{delivered.commitment.hex()} of client {claim.client} is not that of round"
            f" {t} in the data set 0x{claim.dataset_root.hex()}"
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
            f" with {package.count:,} words; expected are {expected.scheme.value},"
            f" {expected.rank} and {words:,}"
        )
