"""The parts of a contribution that one member opened, and the checks that this member does alone.

They come out of two bundles: the contribution, and if the client is audited the answer.
"""

from dataclasses import dataclass
from typing import Final

from opfl_chain.protocol.commitments import SALT_WORDS, Scheme, Subject
from opfl_chain.protocol.errors import DeliveryMissing, InputNotCommitted, ShareError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import ClientIndex, RoundNumber
from opfl_chain.protocol.inputs import is_input_of_round
from opfl_chain.protocol.proof.package import ProofForm, ProofPackage
from opfl_chain.protocol.ring import UnsignedWords
from opfl_chain.protocol.shares import SharePackage, verify_components, verify_package
from opfl_chain.protocol.widths import bytes32

Held = tuple[UnsignedWords, UnsignedWords]
"""The two components of a secret vector that a member holds."""
MOST_PROOF_NODES: Final = 32
"""The longest proof: round numbers have 32 bits, and a data set has one input per round."""


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
    """A digest of all leaf hashes but those of a proof. Members compare it before they meet inside
    MPC, so that all hold parts of one sharing."""


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
    leaves = keccak256(*(leaf for package in packages for leaf in package.leaf_hashes))
    return Checked(gradient, training_input, advice, proof, leaves)


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
