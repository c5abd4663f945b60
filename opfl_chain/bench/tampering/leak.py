"""`leak` with all the knowledge there is: everything about an honest step but one bit of it.

The attacker knows weights, image, coins, its own two components, and that the label is one of two.
So it computes all words that a client with either label would have advised. What is left to keep
the label secret are the client's two masks, the comparison of answers, and that members answer to
one challenge only. Each is switched off here, to see which of them it is that defends.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from opfl_chain.bench.tampering.attacks import Tampering
from opfl_chain.bench.tampering.audits import audit, uncompared
from opfl_chain.bench.tampering.contributions import Proved, contribution
from opfl_chain.lab.sample_step import ProvedSample
from opfl_chain.learning.model import Model
from opfl_chain.numerics.field import MODULUS, Elements
from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.proof import folding
from opfl_chain.protocol.proof.answers import Query
from opfl_chain.protocol.proof.closing import MASKS
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.proof.package import Sharing
from opfl_chain.protocol.proof.prover import Prover
from opfl_chain.protocol.proof.transcript import Transcript
from opfl_chain.protocol.ring import UnsignedWords, unsigned_words
from opfl_chain.protocol.shares import HASH_BYTES, SharedVector, held_indices

LABELS: Final = (3, 7)
"""The secret is which of them the client has."""
_RANK: Final = 2
"""The attacker."""


@dataclass(frozen=True)
class _Labelled(ProvedSample):
    label: int = 0

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        return np.array([self.label])


class Unmasked(Prover):
    """A client whose masks are zero."""

    def put(self, name: str, words: Elements) -> None:
        super().put(name, Elements.zeros(words.shape) if name == MASKS else words)


class _Following(Sharing):
    """Shares words, but draws the coins of somebody else's transcript."""

    def __init__(self, sharing: Sharing, transcripts: Sequence[Transcript]) -> None:
        super().__init__(sharing.seeds, sharing.salt, sharing.transcript)
        self._transcripts = transcripts

    def share(self, words: Elements) -> Transcript:
        super().share(words)
        return self._transcripts[len(self._sent) - 1]


class _Candidate:
    """The advice of a client on the victim's coins if a guess at its label is right."""

    def __init__(self, victim: Proved, guess: _Labelled) -> None:
        statement, leaves = victim.query.statement, victim.packages[0].leaves
        self._gradient = _completed(victim.gradient, guess.gradient)
        self._input = _completed(victim.training_input, guess.training_input)
        rings = self._gradient, self._input
        prover = Unmasked(statement, victim.context, secrets.token_bytes(HASH_BYTES), *rings)
        start = Transcript.start(victim.context, statement.hash)
        prover.sharing = _Following(prover.sharing, leaves.transcripts(start))
        first, second, _ = prover.prove().packages
        self._parts = (*first.held, second.held[1])

    def left(self, query: Query) -> int:
        """Return the left word that would be opened, but for the mask."""
        held = zip(self._parts, self._gradient, self._input, strict=True)
        first, second, third = (query.answer(*each) for each in held)
        return (first + second + third).left

    def mask(self, query: Query, opened: Answer) -> int:
        """Return the mask that an opened word would then have."""
        points = range(folding.ARITY + 1)
        at = query.transcripts[-1].point("point", folding.LAST_VALUES - 1)
        weight, *_ = folding.lagrange(points, at).to_python()
        return (opened.left - self.left(query)) * pow(weight, -1, MODULUS) % MODULUS


def _completed(vector: SharedVector, guess: NDArray[np.int64]) -> list[UnsignedWords]:
    """Return the attacker's two components, and the third that makes them the guess."""
    held = held_indices(_RANK)
    parts = {index: vector.components[index] for index in held}
    (missing,) = set(range(COMPONENTS)) - set(held)
    rest = unsigned_words("guess", guess)
    parts[missing] = rest - parts[held[0]] - parts[held[1]]
    return [parts[index] for index in range(COMPONENTS)]


def leak_runs(model: Model, seed: int) -> list[dict[str, Any]]:
    """Try both guesses on both secrets, and count the secrets that what is seen tells apart."""
    told: dict[str, int] = {}
    samples = [_Labelled(model, seed, label=label) for label in LABELS]
    for secret, sample in enumerate(samples):
        for off, seen in _tries(sample, samples):
            told[off] = told.get(off, 0) + (seen[secret] != seen[1 - secret])
    return [{"off": off, "secrets": len(LABELS), "told": count} for off, count in told.items()]


def _tries(sample: _Labelled, guesses: Sequence[_Labelled]) -> Iterator[tuple[str, list[Any]]]:
    """Yield which defences are off, and what the attacker sees for each guess."""
    masked, bare = (
        contribution(sample, sample.gradient, "honest", "plain proof", make)
        for make in (Prover, Unmasked)
    )
    for how, victim in (("", masked), ("masks", bare)):
        tampering = Tampering(victim, _RANK, 0)
        lefts = [_Candidate(victim, guess).left(victim.query) for guess in guesses]
        attacks = [tampering.guessing(left, is_right=False) for left in lefts]
        shown = [left == victim.total.left for left in lefts]
        ended = [audit(victim, _RANK, each) for each in attacks]
        yield how or "nothing", list(zip(ended, shown, strict=True))
        off = ", ".join(filter(None, (how, "comparison")))
        yield off, [uncompared(victim, _RANK, each) for each in attacks]
    # Members that answer to another challenge on the same words.
    candidates = [_Candidate(masked, guess) for guess in guesses]
    again = Query.of(masked.query.statement, secrets.token_bytes(32), masked.packages[0].leaves)
    opened = _opened(masked, again)
    yield (
        "one challenge only",
        [each.mask(masked.query, masked.total) == each.mask(again, opened) for each in candidates],
    )


def _opened(victim: Proved, query: Query) -> Answer:
    parts = (victim.component(index) for index in range(COMPONENTS))
    rings = victim.gradient.components, victim.training_input.components
    first, second, third = (query.answer(*each) for each in zip(parts, *rings, strict=True))
    return first + second + third
