"""The values of a statement's wires, on the words themselves or on a component of their shares."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from opfl_chain.numerics.field import Elements
from opfl_chain.protocol.errors import ShareError
from opfl_chain.protocol.proof.closing import PROJECTED_COMMITMENT, Statement
from opfl_chain.protocol.proof.statement import Equation, Words, quadratic_value
from opfl_chain.protocol.proof.wires import Compute, Wire
from opfl_chain.protocol.ring import UnsignedWords


@dataclass
class Evaluation:
    """Values by wire. ``one`` stands for one: it is zero in all components but the first."""

    one: Elements = field(default_factory=lambda: Elements.scalar(1))
    _known: dict[Compute, Elements] = field(default_factory=dict)
    """Values by recipe. The key keeps the recipe alive, so that no other one gets its address."""

    def set(self, wire: Wire, value: Elements) -> None:
        """Give a leaf its value."""
        if value.size != wire.size:
            raise ShareError(f"{wire.detail.decode()} has {value.size:,} words, not {wire.size:,}")
        self._known[wire.compute] = value.reshape(*wire.shape)

    def __call__(self, wire: Wire) -> Elements:
        """Return the value of a wire, which is computed once."""
        key = wire.compute
        if key not in self._known:
            found = wire.compute(self.one, [self(parent) for parent in wire.parents])
            self._known[key] = found
        return self._known[key]

    def set_words(self, groups: tuple[Words, ...], words: Elements) -> None:
        """Give the words of a stage their values, in order."""
        expected = sum(group.wire.size for group in groups)
        if words.size != expected:
            raise ShareError(f"a stage has {words.size:,} words, the statement {expected:,}")
        start = 0
        for group in groups:
            self.set(group.wire, words[start : start + group.wire.size])
            start += group.wire.size


def set_inputs(statement: Statement, value: Evaluation, words: Elements) -> None:
    """Give the committed inputs their values: a component, or the sum of all three."""
    for ring in statement.rings:
        if ring.name != PROJECTED_COMMITMENT:
            value.set(ring.wire, words[ring.start : ring.start + ring.wire.size])


def set_projected(statement: Statement, value: Evaluation, projections: Elements) -> None:
    """Give the projections of the committed gradient their values, in the same way."""
    for ring in statement.rings:
        if ring.name == PROJECTED_COMMITMENT:
            value.set(ring.wire, projections)


def gradient_value(statement: Statement, value: Evaluation) -> Elements:
    """Return the gradient that follows from the advice, with `gradient_bits` fraction bits."""
    parts = []
    for term in statement.gradient:
        right = value(term.right)
        if term.left is None:
            found = right.sum(0)
        else:
            found = value(term.left).transpose(1, 0).matmul(right)
        parts.append(found.flat * (1 << (statement.gradient_bits - term.bits)))
    return Elements.concatenate(parts)


def residual_of(equation: Equation, value: Evaluation, projected: Elements) -> Elements:
    """Return what an equation leaves over, zero if it holds exactly."""
    found = quadratic_value(equation.expression, value)
    return found + projected * equation.gradient_factor if equation.gradient_factor else found


def scaled_residuals(statement: Statement, value: Evaluation, projected: Elements) -> Elements:
    """Return the residuals of all rounded equations, each in units of half its own quantum.

    They are integers: a unit is half of the largest quantum.
    """
    return Elements.concatenate(
        [
            residual_of(equation, value, projected) * (2 * statement.unit // equation.quantum)
            for equation in statement.rounded
        ]
    )


def small_vector(statement: Statement, value: Evaluation) -> Elements:
    """Return all that is shown to be small."""
    return Elements.concatenate([value(wire) for wire in statement.shown_small])


def biased_digits(statement: Statement, projections: Elements) -> Elements:
    """Return the binary digits of projections plus the bound, which are not negative if small.

    Projections beyond the bound have no digits; theirs are those of the nearest bound.
    """
    bits = statement.rules.word_bits
    limit = 1 << bits
    shifted = [min(max(each + limit, 0), 2 * limit - 1) for each in projections.to_signed()]
    return Elements.of_python(shifted).bits(bits + 1)


def as_integers(words: UnsignedWords) -> Elements:
    """Return a component of ring words as non-negative integers."""
    return Elements.of_integers(np.ascontiguousarray(words).view(np.uint64))
