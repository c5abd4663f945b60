"""Small statements over a few words, with all that a statement can have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from opfl_chain.numerics.field import Elements
from opfl_chain.protocol.proof.closing import Commitment, Statement, Tolerance, seal
from opfl_chain.protocol.proof.evaluation import gradient_value
from opfl_chain.protocol.proof.prover import Proof, Prover
from opfl_chain.protocol.proof.statement import Builder, Words
from opfl_chain.protocol.proof.wires import PADDING, Wire
from opfl_chain.protocol.shares import SharedVector

CONTEXT = b"\x07" * 32
ENTROPY = b"\x08" * 32
GRADIENT_BITS = 44


@dataclass(frozen=True)
class SmallRules:
    """Rules with few projections, so that the slow implementation stays quick."""

    value_bits: int = 28
    error_bits: int = 30
    unit_bits: int = 40
    word_bits: int = 50
    range_bits: int = 6
    projections: int = 8


RULES = SmallRules()
TOLERANCE = Tolerance(1 << 24, 1 << 36)


def _square(builder: Builder, name: str, wire: Wire) -> Wire:
    return builder.rounded(name, wire * wire, RULES.value_bits)


def _weighted(builder: Builder, name: str, wire: Wire) -> Wire:
    rows = wire.reshape(1, wire.size)
    weights = np.arange(wire.size**2).reshape(wire.size, wire.size) - 3
    return rows.matrix(weights, 3).plus(5).reshape(wire.size)


def _mask(builder: Builder, name: str, wire: Wire) -> Wire:
    mask = builder.bits(f"{name}.mask", wire.shape, lambda value: _signs(value(wire)))
    result = builder.rounded(name, mask * wire, wire.bits)
    magnitude = (result.times(2) - wire).quadratic
    builder.finely_nonnegative(f"{name}.side", magnitude, wire.bits + RULES.range_bits)
    return result


def _signs(values: Elements) -> Elements:
    return Elements.of_integers((values.to_floats() > 0).astype(np.int64))


def _exact(builder: Builder, name: str, wire: Wire) -> Wire:
    total = wire.sum(0).reshape(1).broadcast(wire.shape)
    product = wire * total.plus(1)
    return builder.exactly(name, product.finer(product.bits + 2), product.bits)


def _rearranged(builder: Builder, name: str, wire: Wire) -> Wire:
    index = np.roll(np.arange(wire.size), 1)
    index[0] = PADDING
    return wire.gather(index) - wire.times(3)


def _counted(builder: Builder, name: str, wire: Wire) -> Wire:
    builder.counted(name, (wire * wire).sum(), 90)
    return wire


OPERATIONS: dict[str, Callable[[Builder, str, Wire], Wire]] = {
    "square": _square,
    "weighted": _weighted,
    "mask": _mask,
    "exact": _exact,
    "rearranged": _rearranged,
    "counted": _counted,
}


def small_statement(operations: Sequence[str], words: int, outputs: int) -> Statement:
    """Return a statement whose input goes through operations, in pairs of rows, to a gradient."""
    builder = Builder(RULES)
    wire = builder.ring("input", 0, (words,), RULES.value_bits)
    for number, operation in enumerate(operations):
        wire = OPERATIONS[operation](builder, f"{number} {operation}", wire)
        if wire.parents or wire.bits > RULES.value_bits:  # words again, whose bound is known
            wire = builder.rounded(f"{number} settled", wire.quadratic, RULES.value_bits)
    left = wire.reshape(1, words)
    right = builder.rounded(
        "errors",
        (wire.gather(np.arange(outputs) % words) * wire.gather(np.zeros(outputs, np.intp))),
        RULES.error_bits,
    ).reshape(1, outputs)
    builder.add_gradient("weight", left, right)
    builder.add_gradient("bias", None, right)
    lifts = builder.bits(
        "lift", (2,), lambda value: Elements.of_integers(np.array([0, 1], np.int64))
    )
    builder.exact("one lift", lifts.sum(0).plus(-1).quadratic)
    factor = lifts.reshape(1, 2).matrix(np.array([[1], [2]]), 0).reshape(1).bounded(2)
    return seal(builder, ["weight", "bias"], factor, Commitment(GRADIENT_BITS, 1), TOLERANCE)


class Tampering(Prover):
    """Adds an error to one word."""

    def __init__(self, *arguments: Any, group: str = "", at: int = 0, error: int = 0) -> None:
        super().__init__(*arguments)
        self._group, self._at, self._error = group, at, error

    def advise(self, group: Words) -> Elements:
        found = super().advise(group)
        if group.name != self._group:
            return found
        errors = [self._error * (i == self._at % found.size) for i in range(found.size)]
        return found.flat + Elements.of_python(errors)


@dataclass(frozen=True)
class Case:
    """A statement, and the shares that a proof of it is about."""

    statement: Statement
    gradient: SharedVector
    training_input: SharedVector

    @classmethod
    def of(cls, statement: Statement, words: Sequence[int], error: int = 0) -> Case:
        """Share an input, and the gradient that follows from it, off by an error."""
        shared = SharedVector.split(np.array(words, np.int64), b"\x01" * 32, b"\x02" * 32)
        nothing = [np.zeros(statement.coordinates, np.uint64)] * 3
        prover = Prover(statement, CONTEXT, ENTROPY, nothing, shared.components)
        prover.advise_all()
        exact = gradient_value(statement, prover.value).to_signed()
        shift = statement.gradient_bits - GRADIENT_BITS + 1  # the lift is two
        gradient = [(each + (1 << shift - 1)) >> shift for each in exact]
        gradient[-1] += error
        seeds = b"\x03" * 32, b"\x04" * 32
        return cls(statement, SharedVector.split(np.array(gradient, np.int64), *seeds), shared)

    def prove(self, group: str = "", at: int = 0, error: int = 0) -> Proof:
        """Prove, with an error in one word of a group."""
        return Tampering(
            self.statement,
            CONTEXT,
            ENTROPY,
            self.gradient.components,
            self.training_input.components,
            group=group,
            at=at,
            error=error,
        ).prove()


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Statements of a few operations, and inputs."""
    operations = draw(st.lists(st.sampled_from(sorted(OPERATIONS)), max_size=3))
    words = draw(st.integers(1, 4))
    statement = small_statement(operations, words, draw(st.integers(1, 3)))
    one = 1 << RULES.value_bits
    given = draw(st.lists(st.integers(-one, one), min_size=words, max_size=words))
    return Case.of(statement, given, draw(st.sampled_from([0, 0, 0, 1 << 20])))
