"""What a client makes of a gradient or an input: a commitment, and a package for each member."""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy.typing as npt

from opfl_chain.protocol.gradient import COMPONENTS, Scheme, Subject, shares_commitment
from opfl_chain.protocol.gradient_tree import salted_words, tree_commitment
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.ring_shares import SharedVector, SharePackage
from opfl_chain.protocol.widths import bytes32

_SEEDS: Final = (b"seed 0", b"seed 1")
_SALTS: Final = tuple(b"salt %d" % k for k in range(COMPONENTS))
_TREE_SALT: Final = b"tree salt"
_ADVICE: Final = b"advice"


@dataclass(frozen=True)
class Committed:
    """A commitment, and what each member is sent of what is committed to, by rank."""

    commitment: bytes
    packages: tuple[SharePackage, SharePackage, SharePackage] = field(repr=False)


def commit(scheme: Scheme, subject: Subject, words: npt.NDArray[Any], entropy: bytes) -> Committed:
    """Commit to ``words`` and share them.

    All seeds and salts come from 32 bytes of ``entropy``, which are random, secret and used once:
    who keeps them can make the same packages again.
    """
    if scheme is Scheme.MPC:
        salt = _derived(entropy, subject.tag, _TREE_SALT)
        commitment = tree_commitment(subject, salt, words)
        packages = _share(scheme, subject.tag, salted_words(words, salt), entropy)
        return Committed(commitment, packages)
    packages = _share(scheme, subject.tag, words, entropy)
    return Committed(shares_commitment(subject, packages[0].leaf_hashes), packages)


def share_advice(
    scheme: Scheme, words: npt.NDArray[Any], entropy: bytes
) -> tuple[SharePackage, SharePackage, SharePackage]:
    """Share advice, which is not committed to. The entropy may be that of the input."""
    return _share(scheme, _ADVICE, words, entropy)


def _share(
    scheme: Scheme, purpose: bytes, words: npt.NDArray[Any], entropy: bytes
) -> tuple[SharePackage, SharePackage, SharePackage]:
    seed0, seed1 = (_derived(entropy, purpose, label) for label in _SEEDS)
    salts = [_derived(entropy, purpose, label) for label in _SALTS]
    return SharedVector.split(words, seed0, seed1).packages(scheme, salts)


def _derived(entropy: bytes, purpose: bytes, label: bytes) -> bytes:
    return keccak256(bytes32("entropy", entropy), purpose, label)
