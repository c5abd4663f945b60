"""One random combination of all equations: an inner product of two vectors, plus a number.

It is zero if all equations hold. If one does not, it is zero with probability 1 / p. Both vectors
and the number are affine in the words, so that members compute their components alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opfl_chain.numerics.field import Elements
from opfl_chain.numerics.projections import mix
from opfl_chain.protocol.proof.closing import (
    RESIDUAL_PROJECTIONS,
    WORD_DIGITS,
    Statement,
)
from opfl_chain.protocol.proof.evaluation import Evaluation, small_vector
from opfl_chain.protocol.proof.statement import Equation, digits_value
from opfl_chain.protocol.proof.transcript import Transcript
from opfl_chain.protocol.proof.wires import Wire, constant


@dataclass(frozen=True)
class Coins:
    """The ternary coins of the three projections."""

    gradient: bytes
    residuals: bytes
    words: bytes


@dataclass(frozen=True, eq=False)
class Combined:
    """The claim that <left, right> + rest is zero, or one component of it."""

    left: Elements
    right: Elements
    rest: Elements


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The public coefficients of a combination, the same for all components."""

    statement: Statement
    equations: Sequence[Elements]
    """A coefficient for each equation of the statement, in its shape."""
    gradient: Elements
    """A coefficient for each coordinate of the gradient."""
    residual_projections: Elements
    word_projections: Elements
    small: Elements

    @classmethod
    def draw(cls, statement: Statement, coins: Coins, transcript: Transcript) -> Coefficients:
        """Draw the coefficients after the last stage."""
        projections = statement.rules.projections
        of_residuals = transcript.coefficients("residuals", projections)
        mixed = mix(of_residuals, coins.residuals, statement.residuals)
        found, start = [], 0
        on_gradient = Elements.zeros((projections,))
        for equation in statement.equations:
            if equation.quantum:
                drawn = mixed[start : start + equation.size]
                drawn = drawn * (2 * statement.unit // equation.quantum)
                start += equation.size
            else:
                drawn = transcript.coefficients(f"equation {equation.name}", equation.size)
            drawn = drawn.reshape(*equation.expression.shape)
            found.append(drawn)
            if equation.gradient_factor:
                on_gradient = on_gradient + drawn * equation.gradient_factor
        of_words = transcript.coefficients("words", projections)
        count = sum(wire.size for wire in statement.shown_small)
        return cls(
            statement,
            found,
            mix(on_gradient, coins.gradient, statement.coordinates),
            of_residuals,
            of_words,
            mix(of_words, coins.words, count),
        )

    def combine(self, value: Evaluation) -> Combined:
        """Combine all equations on the words, or on one component of them."""
        statement = self.statement
        products = _Products()
        rest: list[Elements] = []
        for equation, drawn in zip(statement.equations, self.equations, strict=True):
            _add_equation(equation, drawn, value, products, rest)
        self._add_gradient(value, products, rest)
        by_name = {group.name: group.wire for group in statement.words}
        projected = value(by_name[RESIDUAL_PROJECTIONS])
        rest.append(-self.residual_projections.dot(projected))
        shape = (statement.rules.projections,)
        limit = constant(1 << statement.rules.word_bits, shape, 0)
        digits = digits_value(by_name[WORD_DIGITS])
        rest.append(self.small.dot(small_vector(statement, value)))
        rest.append(self.word_projections.dot(value(limit) - value(digits)))
        left, right = products.vectors()
        return Combined(left, right, Elements.concatenate(rest).sum())

    def _add_gradient(self, value: Evaluation, products: _Products, rest: list[Elements]) -> None:
        """Add the projections of left^T right: the products are of right and left times them."""
        start = 0
        for term in self.statement.gradient:
            scale = 1 << (self.statement.gradient_bits - term.bits)
            drawn = self.gradient[start : start + term.size] * scale
            start += term.size
            outputs = term.right.shape[1]
            if term.left is None:
                rest.append(value(term.right).sum(0).dot(drawn))
            else:
                weighted = value(term.left).matmul(drawn.reshape(-1, outputs))
                products.add(term.right, value(term.right), weighted)


def _add_equation(
    equation: Equation,
    drawn: Elements,
    value: Evaluation,
    products: _Products,
    rest: list[Elements],
) -> None:
    expression = equation.expression
    if expression.linear is not None:
        rest.append(drawn.dot(value(expression.linear)))
    for each in expression.products:
        weights, shape = drawn, each.left.shape
        if len(shape) > len(expression.shape):
            ones = (1,) * (len(shape) - len(expression.shape))
            weights = drawn.reshape(*expression.shape, *ones)
        right = value(each.right) * weights
        products.add(each.left, value(each.left), right * each.factor)


class _Products:
    """Products by their left factor, so that all with the same one are a single product."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Elements, Elements]] = {}

    def add(self, wire: Wire, left: Elements, right: Elements) -> None:
        key = id(wire.compute)
        known = self._found.get(key)
        self._found[key] = (left, right if known is None else known[1] + right)

    def vectors(self) -> tuple[Elements, Elements]:
        found = list(self._found.values())
        return (
            Elements.concatenate([left for left, _ in found]),
            Elements.concatenate([right for _, right in found]),
        )
