"""A fully linear proof that an inner product has a claimed value, folded until one product is left.

Both vectors are cut into rows of eight, which are values of polynomials at the points 1 to 8. The
client states the sum over all rows of the products of these polynomials, as values of one
polynomial P of degree 14. The sum of P over 1 to 8 is the claim. At a random point r it is the
inner product of the vectors of all rows at r: vectors of an eighth of the length, and the next
claim.

The last row has a random value at the point 0 as well, so that its value at r tells nothing.
Soundness: a wrong claim survives a level with probability at most 16 / p.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from opfl_chain.numerics.field import MODULUS, Elements, FieldError
from opfl_chain.protocol.errors import ShareError
from opfl_chain.protocol.proof.combination import Combined
from opfl_chain.protocol.proof.transcript import Transcript

ARITY: Final = 8
INNER_VALUES: Final = 2 * ARITY - 1
"""The values of P at the points 1 to 15, of every level but the last."""
LAST_VALUES: Final = 2 * ARITY + 1
"""The values of P at the points 0 to 16, of the last level."""
ANSWER_WORDS: Final = 4


def level_sizes(products: int) -> list[int]:
    """Return the number of words of each level of the proof for so many products."""
    sizes = []
    while products > ARITY:
        sizes.append(INNER_VALUES)
        products = -(-products // ARITY)
    return [*sizes, LAST_VALUES]


@dataclass(frozen=True, eq=False)
class Level:
    """Both vectors at one level, as rows of values at the points `first` to 8."""

    left: Elements
    right: Elements
    first: int

    @classmethod
    def of(cls, left: Elements, right: Elements, masks: Elements) -> Level:
        """Cut vectors into rows; a single row gets the masks at the point 0."""
        rows = -(-left.size // ARITY)
        padding = Elements.zeros((rows * ARITY - left.size,))
        parts = [Elements.concatenate([each, padding]) for each in (left, right)]
        if rows == 1:
            parts = [Elements.concatenate([masks[i : i + 1], parts[i]]) for i in (0, 1)]
        shaped = [part.reshape(rows, -1) for part in parts]
        return cls(shaped[0], shaped[1], 0 if rows == 1 else 1)

    @property
    def is_last(self) -> bool:
        """Return whether one row is left."""
        return self.first == 0

    @property
    def points(self) -> range:
        """The points at which P is stated."""
        return range(self.first, self.first + (LAST_VALUES if self.is_last else INNER_VALUES))

    def polynomial(self) -> Elements:
        """Return the values of P."""
        known = range(self.first, ARITY + 1)
        further = _extension(self.first)
        inside = (self.left * self.right).sum(0)
        beyond = (self.left.matmul(further) * self.right.matmul(further)).sum(0)
        assert len(self.points) == len(known) + beyond.size
        return Elements.concatenate([inside, beyond])

    def at(self, point: int) -> tuple[Elements, Elements]:
        """Return both vectors at a point."""
        weights = lagrange(range(self.first, ARITY + 1), point).reshape(-1, 1)
        return self.left.matmul(weights).flat, self.right.matmul(weights).flat

    def claimed(self, values: Elements) -> Elements:
        """Return the sum of P over the points of the vectors."""
        start = 1 - self.first
        return values[start : start + ARITY].sum()


def prove(combined: Combined, masks: Elements, state: Callable[[Elements], Transcript]) -> None:
    """State P of each level; `state` shares it and returns the transcript that has taken it in."""
    left, right = combined.left, combined.right
    while True:
        level = Level.of(left, right, masks)
        transcript = state(level.polynomial())
        if level.is_last:
            return
        left, right = level.at(_point(transcript, level))


@dataclass(frozen=True)
class Answer:
    """One component of the answer: the last product at a random point, and all claims combined."""

    left: int
    right: int
    product: int
    rest: int

    def __add__(self, other: Answer) -> Answer:
        pairs = zip(self.words, other.words, strict=True)
        return Answer(*((a + b) % MODULUS for a, b in pairs))

    @property
    def words(self) -> tuple[int, int, int, int]:
        """All four."""
        return self.left, self.right, self.product, self.rest

    @property
    def holds(self) -> bool:
        """Return whether the sum of all components accepts."""
        return self.left * self.right % MODULUS == self.product and self.rest == 0

    def encode(self) -> bytes:
        """Return the canonical bytes."""
        return Elements.of_python(self.words).encode()

    @classmethod
    def decode(cls, data: bytes) -> Answer:
        """Read an answer; encodings that are not canonical are refused."""
        try:
            found = Elements.decode(data, "answer").to_python()
        except FieldError as error:
            raise ShareError(str(error)) from error
        if len(found) != ANSWER_WORDS:
            raise ShareError(f"an answer has {ANSWER_WORDS} words, this one has {len(found)}")
        return cls(*found)


def answer(
    combined: Combined,
    masks: Elements,
    stated: Sequence[Elements],
    transcripts: Sequence[Transcript],
) -> Answer:
    """Return the answer on one component of the vectors, the masks and the stated values.

    ``transcripts`` are those that have taken in the levels so far, one for each level.
    """
    left, right = combined.left, combined.right
    claims: list[Elements] = []
    expected = -combined.rest
    for values, transcript in zip(stated, transcripts, strict=True):
        level = Level.of(left, right, masks)
        point = _point(transcript, level)
        claims.append(level.claimed(values) - expected)
        left, right = level.at(point)
        expected = lagrange(level.points, point).dot(values)
    drawn = transcripts[-1].coefficients("claims", len(claims))
    rest = drawn.dot(Elements.concatenate(claims))
    words = Elements.concatenate([left, right, expected, rest])
    return Answer(*words.to_python())


def _point(transcript: Transcript, level: Level) -> int:
    return transcript.point("point", level.points[-1])


def lagrange(points: range, at: int) -> Elements:
    """Return the weights of values at ``points`` for the polynomial's value at another point."""
    weights = []
    for i in points:
        above, below = 1, 1
        for j in points:
            if i != j:
                above = above * (at - j) % MODULUS
                below = below * (i - j) % MODULUS
        weights.append(above * pow(below, -1, MODULUS))
    return Elements.of_python(weights)


@cache
def _extension(first: int) -> Elements:
    """Return the matrix that extends values at `first` to 8 to all further points of P."""
    known = range(first, ARITY + 1)
    beyond = range(ARITY + 1, first + (LAST_VALUES if first == 0 else INNER_VALUES))
    columns = [lagrange(known, at) for at in beyond]
    return Elements.concatenate(columns).reshape(len(columns), len(known)).transpose(1, 0)
