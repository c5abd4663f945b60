"""Contributions judged by others than those they were sealed to: shared anew among those who meet.

When a seat has changed, who meets may hold the parts of another seat, or none. Two that were given
different parts know all three components between them. They deal what they know, each component
once, under fresh randomness: so everyone gets the parts of its rank, and nobody learns a component
that it was not given.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from opfl_chain.mpc.session.ranks import MEMBERS, Rank, peers_of
from opfl_chain.mpc.session.runtime import Runtime
from opfl_chain.mpc.session.session import Session
from opfl_chain.protocol.commitments import SEED_BYTES
from opfl_chain.protocol.delivery import Checked, Claim, Expected, Held
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.ring import RING_WORD_BYTES, UnsignedWords
from opfl_chain.protocol.shares import expand, held_indices


@dataclass(frozen=True)
class Given:
    """Parts of the judged contributions that were given to those who meet."""

    ranks: tuple[Rank | None, ...] = tuple(range(MEMBERS))
    """The rank of each member when the parts were sealed, or None, by its rank in this session."""
    inputs: Mapping[ClientIndex, bytes] = field(default_factory=dict)
    """Public commitments to inputs, for members that were given no parts."""

    @property
    def holders(self) -> list[Rank]:
        """The ranks of the members that were given parts."""
        return [rank for rank, given in enumerate(self.ranks) if given is not None]

    @property
    def is_as_sealed(self) -> bool:
        return self.ranks == AS_SEALED.ranks

    @property
    def is_enough(self) -> bool:
        """Return whether those who meet know all components between them."""
        return all(self._holder_of(component) is not None for component in range(MEMBERS))

    def dealt_by(self, rank: Rank) -> list[int]:
        """The components that a member deals: those that no member before it was given."""
        return [each for each in range(MEMBERS) if self._holder_of(each) == rank]

    def _holder_of(self, component: int) -> Rank | None:
        for rank, given in enumerate(self.ranks):
            if given is not None and component in held_indices(given):
                return rank
        return None


AS_SEALED: Final = Given()
"""All are where they were when the contributions were sealed."""


@dataclass(frozen=True)
class Parts:
    """A member's components of one contribution, of its rank in the session."""

    gradient: Held
    training_input: Held | None
    advice: Held | None

    @classmethod
    def of(cls, checked: Checked) -> Parts:
        return cls(checked.gradient, checked.training_input, checked.advice)


def parts_here(
    session: Session,
    expected: Expected,
    given: Given,
    claims: Sequence[Claim],
    checked: Mapping[Claim, Checked],
) -> dict[Claim, Parts]:
    """Return our parts of contributions in which nobody found a fault, shared anew if need be."""
    if given.is_as_sealed:
        return {claim: Parts.of(checked[claim]) for claim in claims}
    if not claims:
        return {}
    sizes = {claim: _sizes(expected, claim) for claim in claims}
    dealt = np.zeros(sum(map(sum, sizes.values())), np.uint64)
    own = given.ranks[session.rank]
    places = [
        place
        for place, component in enumerate(held_indices(own) if own is not None else ())
        if component in given.dealt_by(session.rank)
    ]
    for place in places:
        dealt += np.concatenate(
            [held[place] for claim in claims for held in _vectors(checked[claim])]
        )
    shared = session.call(share_anew, dealt=dealt)
    found, start = {}, 0
    for claim, counts in sizes.items():
        vectors: list[Held] = []
        for count in counts:
            cut = slice(start, start + count)
            vectors.append((shared[0][cut], shared[1][cut]))
            start += count
        training_input, advice = (*vectors[1:], None, None)[:2]
        found[claim] = Parts(vectors[0], training_input, advice)
    return found


def share_anew(runtime: Runtime, *, dealt: UnsignedWords) -> tuple[UnsignedWords, UnsignedWords]:
    """Procedure: share the sum of what all deal; return our components of it.

    What a member sends to the one before is masked by a seed that only the one after knows.
    """
    after, before = peers_of(runtime.rank)
    seed = secrets.token_bytes(SEED_BYTES)
    runtime.send(after, seed)
    known = runtime.receive(before)
    if len(known) != SEED_BYTES:
        raise runtime.invalid(before, f"a seed of {len(known)} bytes instead of {SEED_BYTES}")
    own = first_component(dealt, seed, known)
    runtime.send(before, own.astype("<u8").tobytes())
    following = runtime.receive(after)
    if len(following) != RING_WORD_BYTES * len(dealt):
        reason = f"{len(following)} bytes instead of {RING_WORD_BYTES * len(dealt)}"
        raise runtime.invalid(after, reason)
    return own, np.frombuffer(following, "<u8")


def first_component(dealt: UnsignedWords, own: bytes, told: bytes) -> UnsignedWords:
    """Return what a member deals, masked by its own seed and the one that it was told."""
    masked: UnsignedWords = dealt + expand(own, len(dealt)) - expand(told, len(dealt))
    return masked


def _sizes(expected: Expected, claim: Claim) -> list[int]:
    """The numbers of words of gradient, input and advice, as far as they were delivered."""
    sizes = [expected.package_words(expected.gradient_words)]
    if claim.audited:
        sizes.append(expected.package_words(expected.input_words))
    if claim.audited and expected.advice_words:
        sizes.append(expected.advice_words)
    return sizes


def _vectors(checked: Checked) -> list[Held]:
    vectors = (checked.gradient, checked.training_input, checked.advice)
    return [each for each in vectors if each is not None]
