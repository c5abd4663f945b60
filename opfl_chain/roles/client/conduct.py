"""The conduct of a client: its data, gradients and bundles. The default is honest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from opfl_chain.protocol.bundle import Bundle, Parts
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.prover import Prover, Usage
from opfl_chain.protocol.ring import Words
from opfl_chain.protocol.shares import Committed
from opfl_chain.rules.boundary import Boundary

Vector = NDArray[np.float32]
Images = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FinishedStep:
    """A client's knowledge in a round before it commits to a gradient."""

    t: int
    policy: Policy
    weights: Vector
    """The global model, flat in canonical order."""
    examples: Images
    """The committed input that an audit replays."""
    labels: Labels
    gradient: Vector
    """The honest gradient, flat."""
    logits: NDArray[np.float32]
    gradient_of: Callable[[Images, Labels], Vector]
    """Computes the gradient of other examples at the same weights."""
    boundary: Boundary | None = None
    seed: int = 0
    """Seed of the client's randomness; a repeated round draws the same values."""

    def random(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.t])


@dataclass(frozen=True, eq=False)
class LocalContribution:
    """A client's record of a round until it is over. With the secret it yields all the rest."""

    gradient: Vector
    advice: Words | None
    memory: bytes
    """The memory of the client's conduct after this round."""
    proof: bytes | None = None
    """The proof of the step, encoded as the client keeps it, if the job's steps are proved."""
    refusal: str = ""
    """Reason for sitting the round out; empty if the client takes part."""
    failures: tuple[str, ...] = ()
    """Faults that an audit of the proved step would find; not kept."""


@dataclass(frozen=True)
class Parcel:
    """A bundle as it is posted to a member, with the client's signature."""

    content_hash: bytes
    body: bytes
    signature: bytes


class Sharing(Protocol):
    """A client's means to share its contribution to one opening of a round."""

    @property
    def number(self) -> int:
        """The round."""

    @property
    def made(self) -> LocalContribution:
        """The contribution."""

    def committed_gradient(self, gradient: Vector) -> Committed:
        """Commit to a gradient."""

    def parts(self, kind: BundleKind, t: int | None = None) -> Parts:
        """Return the content that the protocol prescribes, or with the input of another round."""

    def seal(self, kind: BundleKind, parts: Parts) -> Bundle:
        """Seal a content to the members in the seats of the round."""

    def sign(self, bundle: Bundle) -> Parcel:
        """Sign a bundle."""


class Conduct:
    """Honest conduct. Subclasses override what they do differently."""

    def training_labels(self, labels: Labels, classes: int) -> Labels:
        """Return the labels that the client commits to before the first round."""
        del classes
        return labels

    def gradient(self, step: FinishedStep, memory: bytes) -> tuple[Vector, bytes]:
        """Return the gradient to commit to, and the memory for the next round.

        The memory is empty at first. The same step and memory give the same gradient again, so
        that a client can be restarted at any time.
        """
        return step.gradient, memory

    def prover(self, *given: Any) -> Prover:
        """Return what proves a step that is to be proved."""
        return Prover(*given)

    def takes_part(self, usage: Usage) -> bool:
        """Return whether to contribute a proved step that uses its bounds so far.

        The verdict of an audit is known beforehand, and an honest client risks nothing.
        """
        return usage.holds

    def parcels(self, sharing: Sharing, kind: BundleKind) -> Mapping[int, Parcel]:
        """Return what each member is sent, by seat. A seat that is left out gets nothing."""
        parcel = sharing.sign(sharing.seal(kind, sharing.parts(kind)))
        return dict.fromkeys(range(COMPONENTS), parcel)
