"""Statements that cannot be made, or could be wrong, are refused with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from proof_steps import (
    GRADIENTS,
    RULES,
    SMALL,
    TOLERANCE,
    SmallModel,
    honest_step,
    random_weights,
    state,
)

from opfl_chain.learning.layout import ParameterLayout, dense
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.learning.operations.table import Operations
from opfl_chain.learning.proved_step import state_step
from opfl_chain.numerics.field import Elements
from opfl_chain.protocol.errors import EncodingError
from opfl_chain.protocol.inputs import InputFormat
from opfl_chain.protocol.proof.evaluation import Evaluation
from opfl_chain.protocol.proof.statement import SLACK_QUANTA, Builder
from opfl_chain.protocol.proof.wires import StatementError, constant


def test_weights_of_which_an_equation_could_wrap_around_are_refused() -> None:
    weights = {name: 300 * array for name, array in random_weights(LENET_61706, 1).items()}
    with pytest.raises(StatementError, match=r"could wrap around.*Weights are too large"):
        state(LENET_61706, weights, 1)


def test_a_weight_beyond_the_public_factors_is_refused() -> None:
    weights = random_weights(SMALL, 1)
    weights["fc1.weight"][0, 0] = 2000.0
    with pytest.raises(StatementError, match=r"up to 2000, they must be below 1024.*too large"):
        state(SMALL, weights, 1)


def test_a_weight_that_is_no_number_is_refused() -> None:
    weights = random_weights(SMALL, 1)
    weights["fc1.weight"][0, 0] = np.nan
    with pytest.raises(EncodingError, match=r"fc1\.weight"):
        state(SMALL, weights, 1)


def test_a_batch_too_large_for_the_bits_is_refused() -> None:
    with pytest.raises(StatementError, match="could wrap around"):
        state(SMALL, random_weights(SMALL, 1), 64)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value_bits": 8, "error_bits": 8}, "the gradient has 16 fraction bits, it needs 62"),
        ({"error_bits": 29}, "more value_bits or error_bits, or fewer unit_bits"),
        ({"range_bits": 20, "value_bits": 40, "unit_bits": 28}, "a quantum of .* is beyond"),
        ({"value_bits": 40, "error_bits": 60}, "could wrap around|beyond"),
        ({"word_bits": 45}, "no honest step would pass.*more word_bits, or fewer unit_bits"),
    ],
)
def test_bits_that_do_not_fit_are_refused(changes: dict[str, int], message: str) -> None:
    rules = RULES.model_copy(update=changes)
    with pytest.raises(StatementError, match=message):
        state(SMALL, random_weights(SMALL, 1), 1, rules)


@pytest.mark.parametrize("show", [Builder.nonnegative, Builder.finely_nonnegative])
def test_values_too_large_for_a_sign_are_refused(show: Any) -> None:
    builder = Builder(RULES)
    wire = builder.ring("values", 0, (1,), 22)
    with pytest.raises(StatementError, match="too large to be shown"):
        show(builder, "values.sign", wire.quadratic, 200)


@dataclass(frozen=True)
class TwoLayers(SmallModel):
    """Two dense layers, of which the second is used as often as said."""

    uses: int = 1

    @cached_property
    def layout(self) -> ParameterLayout:
        return ParameterLayout((*dense("first", 36, 4), *dense("second", 4, 4)))

    def logits(self, parameters: Mapping[str, Any], examples: Any, operations: Operations) -> Any:
        values = examples.reshape(examples.shape[0], -1)
        layers = ["first", *["second"] * self.uses]
        for number, layer in enumerate(layers):
            weight, bias = parameters[f"{layer}.weight"], parameters[f"{layer}.bias"]
            values = operations.dense(values, weight, bias, name=f"layer {number}")
        return values


def test_a_parameter_without_a_gradient_is_refused() -> None:
    model = TwoLayers(uses=0)
    with pytest.raises(StatementError, match=r"second\.weight has no gradient"):
        state(model, random_weights(model, 1), 1)


def test_a_parameter_with_two_uses_is_refused() -> None:
    model = TwoLayers(uses=2)
    with pytest.raises(StatementError, match=r"second\.weight is used twice"):
        state(model, random_weights(model, 1), 1)
    state(TwoLayers(), random_weights(model, 1), 1)


def test_labels_that_are_no_single_class_are_refused() -> None:
    form = InputFormat((1, 6, 6, 1), (1, 2), 4, 22, (-0.5, 3.0))
    with pytest.raises(StatementError, match="one label for each example"):
        state_step(SMALL, random_weights(SMALL, 1), RULES, form, GRADIENTS, 22, TOLERANCE)


def test_two_equations_of_one_name_are_refused() -> None:
    """They would have the same random coefficients, and could be wrong by opposite amounts."""
    builder = Builder(RULES)
    first, second = (builder.advised(name, (2,), 0, lambda value: value) for name in "ab")
    builder.exact("zero", first.quadratic)
    with pytest.raises(StatementError, match="zero exists already"):
        builder.exact("zero", second.quadratic)


def test_words_of_one_name_are_refused() -> None:
    builder = Builder(RULES)
    builder.bits("mask", (2,), lambda value: value)
    with pytest.raises(StatementError, match="words mask exist already"):
        builder.bits("mask", (2,), lambda value: value)


def test_what_is_shown_of_a_square_covers_the_slack_of_its_rounding() -> None:
    """Few unit bits leave more open than any rounding of words."""
    rules = RULES.model_copy(update={"unit_bits": 28})
    for each, open_quanta in ((RULES, 1), (rules, 1 << 20)):
        builder = Builder(each)
        wire = builder.advised("x", (1,), 0, lambda value: value)
        below = builder.nonnegative("positive", wire.quadratic, 50)
        equation = builder.equations[-1]
        product = equation.expression.products[0]
        assert equation.expression.linear is not None
        raised = equation.expression.linear.bound // wire.bound
        assert product.factor == -1
        assert (below - 1) * raised <= SLACK_QUANTA * equation.quantum < below * raised
        assert below >= open_quanta


def test_a_wire_is_not_taken_for_one_that_is_gone() -> None:
    """Values are kept by recipe, and recipes of wires that are gone may not be reused."""
    value = Evaluation()
    for integer in range(200):
        assert value(constant(integer, (1,), 0)).equals(Elements.of_python([integer]))


def test_an_unknown_value_is_named() -> None:
    step = honest_step()
    with pytest.raises(StatementError, match=r"words gradient\.apart has no value yet"):
        step.words("gradient.apart")
