"""Clients that cheat are rejected by the answers, and by the defence that is meant to see them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from proof_steps import (
    CONTEXT,
    ENTROPY,
    GRADIENTS,
    SMALL,
    Change,
    Cheat,
    Step,
    accepted,
    answers_to,
    cheating,
    components,
    honest_step,
    moved,
    set_to,
    state,
    wire_of,
    without,
)

from opfl_chain.numerics.field import MODULUS, Elements
from opfl_chain.numerics.projections import project, project_words
from opfl_chain.protocol.errors import ComponentMismatch
from opfl_chain.protocol.proof import closing, folding
from opfl_chain.protocol.proof.answers import accepts
from opfl_chain.protocol.proof.closing import (
    PROJECTED_COMMITMENT,
    RESIDUAL_PROJECTIONS,
    WORD_DIGITS,
    Statement,
    Tolerance,
)
from opfl_chain.protocol.proof.combination import Coefficients, Coins, Combined
from opfl_chain.protocol.proof.evaluation import (
    Evaluation,
    as_integers,
    gradient_value,
    small_vector,
)
from opfl_chain.protocol.proof.folding import Level
from opfl_chain.protocol.proof.package import (
    ProofComponent,
    ProofForm,
    ProofLeaves,
    ProofPackage,
    Sharing,
)
from opfl_chain.protocol.proof.statement import Builder, quadratic_value
from opfl_chain.protocol.proof.statement import Words as Group
from opfl_chain.protocol.proof.transcript import Transcript

Share = Callable[[Elements], Transcript]
Words = NDArray[np.int64]


@pytest.fixture
def step() -> Step:
    return honest_step()


# --- the committed gradient


def moved_densely(gradient: Words, size: float) -> Words:
    noise = np.random.default_rng(3).standard_normal(gradient.size)
    return _added(gradient, noise * size * np.linalg.norm(gradient) / np.linalg.norm(noise))


def moved_along_itself(gradient: Words, size: float) -> Words:
    return _added(gradient, gradient * size)


def moved_at_one_coordinate(gradient: Words, size: float) -> Words:
    move = np.zeros(gradient.size)
    move[7] = size * np.linalg.norm(gradient)
    return _added(gradient, move)


def _added(gradient: Words, move: NDArray[np.float64]) -> Words:
    return gradient + np.rint(move).astype(np.int64)


MOVES = (moved_densely, moved_along_itself, moved_at_one_coordinate)


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("batch", [1, 4])
def test_a_moved_gradient_is_rejected(move: Callable[[Words, float], Words], batch: int) -> None:
    step = honest_step(batch=batch)
    gradient = move(step.gradient, 3e-5)
    assert not accepted(step, gradient=gradient)
    assert accepted(without(step, "gradient.bound"), gradient=gradient)


@pytest.mark.parametrize("lead", [12, 20, 24])
def test_a_moved_gradient_of_a_sure_model_is_rejected(lead: int) -> None:
    step = honest_step(lead=lead)
    assert not accepted(step, gradient=moved_densely(step.gradient, 3e-5))


@pytest.mark.parametrize(("bits", "hidden"), [(24, True), (34, False)])
def test_a_move_is_not_hidden_in_the_rounding_of_its_comparison(
    monkeypatch: pytest.MonkeyPatch, bits: int, hidden: bool
) -> None:
    """The cheat spends the budget of residuals on saying that nothing is apart."""
    monkeypatch.setattr(closing, "_APART_BITS", bits)
    honest = honest_step()
    statement = state(honest.model, honest.weights, 1, tolerance=Tolerance(1, 1))
    step = honest.with_statement(statement)
    exact = step.implied_gradient()
    assert accepted(step, gradient=GRADIENTS.encode_array("gradient", exact))
    noise = np.random.default_rng(3).standard_normal(exact.size)
    # A word apart in each of K projections are K / 2 squared words, and four times as many units.
    words = np.sqrt(0.4 * statement.residuals / (2 * statement.rules.projections))
    size = words * 2.0 ** -(24 + int(step.words("loss.lift").to_floats().argmax()))
    gradient = GRADIENTS.encode_array("gradient", exact + size * noise / np.linalg.norm(noise))
    assert not accepted(step, gradient=gradient)
    nothing = {"gradient.apart": lambda found, _: Elements.zeros(found.shape)}
    assert accepted(step, nothing, gradient=gradient) is hidden


@pytest.mark.parametrize("places", [[0], [5, 90], [0, 1, 2, 3]])
@pytest.mark.parametrize("power", [61, 62, 63])
def test_a_gradient_that_wraps_around_the_ring_is_rejected(places: list[int], power: int) -> None:
    step = honest_step()
    gradient = step.gradient.view(np.uint64).copy()
    gradient[places] += np.uint64(1 << power)
    assert not accepted(step, gradient=gradient.view(np.int64))


@pytest.mark.parametrize("by", [-1, 1, 2])
def test_a_wrong_carry_of_a_projection_is_rejected(step: Step, by: int) -> None:
    assert not accepted(step, {"gradient.carry": moved(3, by)})


def test_a_misreported_projection_is_rejected(step: Step) -> None:
    changes = {"gradient.low": moved(3, 1 << 20)}
    assert not accepted(step, changes)
    assert not accepted(without(step, "gradient.bound"), changes)
    assert accepted(without(step, "gradient.lift", "gradient.bound"), changes)


def test_a_moved_gradient_is_not_saved_by_projections_of_the_right_one(step: Step) -> None:
    right = components(step.gradient, 1)
    raw = next(each.wire for each in step.statement.rings if each.name == PROJECTED_COMMITMENT)

    class Lying(Cheat):
        """States the projections of a gradient that it did not commit to."""

        def advise(self, group: Group) -> Elements:
            if group.name == "gradient.carry":
                coins = self.sharing.transcript.coins("gradient", step.gradient.size, 128)
                parts = [as_integers(project_words(part, coins, 128)) for part in right]
                self.value.set(raw, parts[0] + parts[1] + parts[2])
            return super().advise(group)

    wrong = moved_densely(step.gradient, 0.1)
    for each, verdict in ((step, False), (without(step, "gradient.lift"), True)):
        rings = components(wrong, 1), components(step.inputs, 5)
        prover = Lying(each.statement, CONTEXT, ENTROPY, *rings)
        prover.changes = {}
        proof = prover.prove()
        assert proof.usage.holds
        assert accepts(answers_to(each, proof.packages, gradient=wrong)) is verdict


@pytest.mark.parametrize("name", ["gradient.apart", "gradient.step", "gradient.allowed"])
def test_a_wrong_comparison_is_rejected(step: Step, name: str) -> None:
    def scaled(words: Elements, value: Evaluation) -> Elements:
        """Hide a difference, or allow a larger one."""
        return words * (0 if name == "gradient.apart" else 1 << 10)

    wrong = moved_densely(step.gradient, 1e-4)
    assert not accepted(step, {name: scaled}, gradient=wrong)
    assert accepted(without(step, name), {name: scaled}, gradient=wrong)


# --- the step


def clear_value(step: Step, layer: str, *, positive: bool) -> int:
    """Return the place of a value that is far from zero."""
    value = step.advised
    roots = value(wire_of(step.statement, f"{layer}.side.root")).to_floats().ravel()
    sides = value(wire_of(step.statement, f"{layer}.mask")).to_floats().ravel() > 0
    return int(np.where(sides == positive, roots, -1).argmax())


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("layer", ["conv", "fc1"])
def test_a_mask_on_the_wrong_side_is_rejected(step: Step, layer: str, positive: bool) -> None:
    place = clear_value(step, layer, positive=positive)
    changes = {f"{layer}.mask": set_to(place, 0 if positive else 1)}
    own = implied(step, changes)
    assert not accepted(step, changes, gradient=own)
    off = without(step, f"{layer}.side", f"{layer}.side.rough")
    assert accepted(off, changes, gradient=own)


def step_near_zero(quanta: int) -> Step:
    """Return a step in which the first value of a ReLU is so many times 2^-44, the least there is.

    Its own mask and the commitment are left to the caller.
    """
    before = honest_step()
    weights = {name: each.copy() for name, each in before.weights.items()}
    weights["conv.weight"][..., 0] = 0
    weights["conv.weight"][1, 1, 0, 0] = 2.0**-22
    weights["conv.bias"][0] = 0
    inputs = before.inputs.copy()
    inputs[0] = quanta
    return replace(before, weights=weights, inputs=inputs, statement=state(SMALL, weights, 1))


@pytest.mark.parametrize("quanta", [2, 1, 0, -1])
def test_no_side_can_be_chosen_however_near_zero_a_value_is(
    quanta: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"conv.mask": set_to(0, 0 if quanta > 0 else 1)}
    step = step_near_zero(quanta)
    assert accepted(step, gradient=implied(step, {}))
    assert not accepted(step, other, gradient=implied(step, other))
    monkeypatch.setattr(Builder, "finely_nonnegative", Builder.nonnegative)
    coarse = step_near_zero(quanta)
    assert accepted(coarse, other, gradient=implied(coarse, other))


@pytest.mark.parametrize("layer", ["fc1", "fc2"])
@pytest.mark.parametrize("by", [1, -1])
def test_activations_have_one_rounding(step: Step, layer: str, by: int) -> None:
    """Else a cheat would move values of the next layers to the other side of zero by it."""
    changes = {f"{layer}.values": moved(1, by)}
    own = implied(step, changes)
    assert not accepted(step, changes, gradient=own)
    free = without(step, f"{layer}.values.low", f"{layer}.values.high")
    assert accepted(free, changes, gradient=own)


@pytest.mark.parametrize("mask", [2, 3, -1])
def test_a_mask_that_is_no_bit_is_rejected(step: Step, mask: int) -> None:
    place = clear_value(step, "fc1", positive=mask > 0)
    changes = {"fc1.mask": set_to(place, mask)}
    own = implied(step, changes)
    assert not accepted(step, changes, gradient=own)
    if mask > 0:
        assert accepted(without(step, "fc1.mask"), changes, gradient=own)


def implied(step: Step, changes: Mapping[str, Change], inputs: Words | None = None) -> Words:
    """Return the gradient that changed advice implies, in committed words."""
    prover = cheating(step, changes, inputs=inputs)
    prover.advise_all()
    statement, value = step.statement, prover.value
    factor = sum(
        bit << power for power, bit in enumerate(value(wire_of(statement, "loss.lift")).to_signed())
    )
    found = gradient_value(statement, value).to_signed()
    shift = statement.gradient_bits - 50
    scale = factor * len(step.labels) << shift
    return np.array([(2 * each + scale) // (2 * scale) for each in found], np.int64)


def test_the_implied_gradient_of_honest_advice_is_accepted(step: Step) -> None:
    assert accepted(step, gradient=implied(step, {}))


def two_lifts(words: Elements, value: Evaluation) -> Elements:
    return Elements.of_integers((np.arange(words.size) < 2).astype(np.int64))


def no_lift(words: Elements, value: Evaluation) -> Elements:
    return Elements.zeros(words.shape)


@pytest.mark.parametrize("lifts", [two_lifts, no_lift])
def test_a_lift_that_is_not_one_power_is_rejected(step: Step, lifts: Change) -> None:
    changes = {"loss.lift": lifts}
    own = implied(step, changes) if lifts is two_lifts else step.gradient * 0
    assert not accepted(step, changes, gradient=own)
    off = without(step, "loss.one lift", "loss.size.bound")
    assert accepted(off, changes, gradient=own)


def lift(power: int) -> Change:
    def change(words: Elements, value: Evaluation) -> Elements:
        return Elements.of_integers((np.arange(words.size) == power).astype(np.int64))

    return change


def test_a_lift_that_is_too_small_is_rejected() -> None:
    step = honest_step(lead=34)
    changes = {"loss.lift": lift(0)}
    own = implied(step, changes)
    assert not accepted(step, changes, gradient=own)
    off = without(step, "loss.size.bound")
    assert accepted(off, changes, gradient=own)
    # Without a lift the floor for rounding hides a gradient that is moved as a whole.
    assert accepted(off, changes, gradient=own * 2)


def test_a_lift_that_is_too_large_is_rejected(step: Step) -> None:
    changes = {"loss.lift": lift(22)}
    assert not accepted(step, changes, gradient=implied(step, changes))


@pytest.mark.parametrize("feature", [3.1, -0.6, 1000.0, -5000.0])
def test_an_input_out_of_range_is_rejected(step: Step, feature: float) -> None:
    inputs = step.inputs.copy()
    inputs[4] = round(feature * 2**22)
    own = implied(step, {}, inputs)
    assert not accepted(step, gradient=own, inputs=inputs)
    side = "features.high" if feature > 0 else "features.low"
    if abs(feature) < 4:
        assert accepted(without(step, side), gradient=own, inputs=inputs)


@pytest.mark.parametrize(
    "targets",
    [[0, 0, 0, 0], [1, 1, 0, 0], [0.5, 0.5, 0, 0], [2, -1, 0, 0], [1.5, 0, 0, -0.5]],
)
def test_a_label_that_is_not_one_hot_is_rejected(step: Step, targets: list[float]) -> None:
    inputs = step.inputs.copy()
    inputs[36:] = [round(each * 2**22) for each in targets]
    own = implied(step, {}, inputs)
    assert not accepted(step, gradient=own, inputs=inputs)
    if all(float(each).is_integer() for each in targets):  # others leave no whole errors either
        off = without(step, "targets.one-hot", "targets.sum")
        assert accepted(off, gradient=own, inputs=inputs)


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("fc1.values", 40),
        ("fc2.values", 200),
        ("conv.error", 40),
        ("fc1.error", 200),
        ("loss.errors", 400),
        ("softmax.power5", 400),
        ("softmax.power16", 400),
    ],
)
def test_words_of_a_whole_layer_that_are_off_by_some_quanta_are_rejected(
    step: Step, any_word: Callable[[], None], name: str, by: int
) -> None:
    changes: dict[str, Change] = {
        name: lambda words, value: (
            words + Elements.of_python([by] * words.size).reshape(*words.shape)
        )
    }
    own = implied(step, changes)
    assert not accepted(step, changes, gradient=own)
    any_word()  # large residuals have large projections
    assert accepted(without(step, "residuals.bound"), changes, gradient=own)


def test_rounding_as_it_should_be_is_what_the_bound_allows(step: Step) -> None:
    """Words that are off by one quantum at one place are within the bound of all residuals."""
    assert accepted(step, {"conv.error": moved(0, 1)})


# --- softmax


def test_a_ceiling_that_is_a_little_too_high_is_rejected(step: Step) -> None:
    def raised(words: Elements, value: Evaluation) -> Elements:
        bits = wire_of(step.statement, "softmax.ceiling").bits
        return words + Elements.of_python([round(1e-5 * 2**bits)]).reshape(*words.shape)

    changes = {"softmax.ceiling": raised}
    own = implied(step, changes)
    assert not accepted(step, changes, gradient=own)
    assert accepted(without(step, "softmax.sum"), changes, gradient=own)


def test_the_second_branch_of_the_exponential_is_rejected(
    step: Step, any_word: Callable[[], None]
) -> None:
    """Far below zero (2 + y) / (2 - y) comes near -1, and its power near one again."""
    bits = wire_of(step.statement, "softmax.ceiling").bits
    lowest = 4 * 2**16 / np.log(4)  # here the power is 1 / 4 for each of four classes
    changes = {"softmax.ceiling": set_to(0, round(lowest * 2**16) << bits)}
    own = implied(step, changes)
    # Beside the range, the fraction is too coarse there, and the argument is no small word.
    assert not accepted(without(step, "softmax.range"), changes, gradient=own)
    assert not accepted(without(step, "residuals.bound"), changes, gradient=own)
    any_word()
    assert not accepted(step, changes, gradient=own)
    assert accepted(without(step, "residuals.bound"), changes, gradient=own)
    assert not np.allclose(own, step.gradient, rtol=0.1)


# --- the field


@pytest.fixture
def any_word(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Switch off the test that words are small."""
    draw = Coefficients.draw

    def without_smallness(
        statement: Statement, coins: Coins, transcript: Transcript
    ) -> Coefficients:
        found = draw(statement, coins, transcript)
        nothing = Elements.zeros(found.small.shape), Elements.zeros(found.word_projections.shape)
        return replace(found, small=nothing[0], word_projections=nothing[1])

    return lambda: monkeypatch.setattr(Coefficients, "draw", staticmethod(without_smallness))


def roots_of_the_field(step: Step, name: str) -> Change:
    """Show that negative integers are squares, by their roots modulo p."""
    equation = next(each for each in step.statement.equations if each.name == name)
    *others, _ = equation.expression.products  # the last one is the square of the root
    scaled = replace(equation.expression, products=tuple(others))

    def change(words: Elements, value: Evaluation) -> Elements:
        found = words.to_signed()
        for place, target in enumerate(quadratic_value(scaled, value).to_signed()):
            if target < 0:
                roots = (pow(target + e, (MODULUS + 1) // 4, MODULUS) for e in range(1000))
                found[place] = next(
                    root for e, root in enumerate(roots) if (root**2 - target - e) % MODULUS == 0
                )
        return Elements.of_python(found)

    return change


def out_of_range(step: Step) -> tuple[Words, Words, dict[str, Change]]:
    """Return an input out of range, its gradient, and words that show it to be in range."""
    inputs = step.inputs.copy()
    inputs[4] = round(3.5 * 2**22)
    changes = {"features.high.root": roots_of_the_field(step, "features.high")}
    return inputs, implied(step, {}, inputs), changes


def test_a_root_that_only_the_field_has_is_rejected(
    step: Step, any_word: Callable[[], None]
) -> None:
    inputs, own, changes = out_of_range(step)
    assert not accepted(step, changes, gradient=own, inputs=inputs)
    any_word()
    assert accepted(step, changes, gradient=own, inputs=inputs)


def test_a_mask_that_only_the_field_allows_is_rejected(
    step: Step, any_word: Callable[[], None]
) -> None:
    place = clear_value(step, "fc1", positive=True)
    changes = {
        "fc1.mask": set_to(place, 0),
        "fc1.side.root": roots_of_the_field(step, "fc1.side.rough"),
    }
    own = implied(step, changes)
    assert not accepted(step, changes, gradient=own)
    any_word()
    assert accepted(step, changes, gradient=own)


def test_digits_that_are_no_bits_are_rejected(step: Step) -> None:
    """One digit could stand for a projection of any size."""
    inputs, own, changes = out_of_range(step)
    limit = 1 << step.statement.rules.word_bits

    class Large(Cheat):
        """Writes each projection into the lowest digit."""

        def put(self, name: str, words: Elements) -> None:
            if name == WORD_DIGITS:
                coins = self.sharing.transcript.coins("words", small.size, 128)
                projected = project(small_vector(step.statement, self.value), coins, 128)
                digits = np.zeros(words.shape, object)
                digits[:, 0] = [each + limit for each in projected.to_python()]
                words = Elements.of_python(digits.ravel()).reshape(*words.shape)
            super().put(name, words)

    small = Elements.zeros(sum(wire.size for wire in step.statement.shown_small))
    for each, verdict in ((step, False), (without(step, WORD_DIGITS), True)):
        prover = Large(each.statement, CONTEXT, ENTROPY, components(own, 1), components(inputs, 5))
        prover.changes = changes
        found = answers_to(each, prover.prove().packages, gradient=own, inputs=inputs)
        assert accepts(found) is verdict


def test_a_difference_that_is_no_sum_of_bits_is_rejected(step: Step) -> None:
    """A negative difference of the two sums of squares has no digits."""
    wrong = moved_densely(step.gradient, 0.01)

    def large(words: Elements, value: Evaluation) -> Elements:
        squares = [
            sum(each**2 for each in value(wire_of(step.statement, name)).to_signed())
            for name in ("gradient.allowed", "gradient.apart")
        ]
        difference = squares[0] + step.statement.floor - squares[1]
        assert difference < 0
        return Elements.of_python([difference] + [0] * (words.size - 1))

    changes = {"gradient.digits": large}
    assert not accepted(step, changes, gradient=wrong)
    assert accepted(without(step, "gradient.digits"), changes, gradient=wrong)


@pytest.mark.parametrize(
    "name", ["fc1.values", "fc2.values", "conv.error", "gradient.step", "softmax.power3"]
)
def test_a_word_that_is_a_fraction_of_the_field_is_rejected(step: Step, name: str) -> None:
    """(2^s a + 1) / 2^s modulo p leaves a residual of one, and is not near a."""
    equation = next(each for each in step.statement.equations if each.name == name)
    fraction = pow(equation.quantum, -1, MODULUS)
    assert not accepted(step, {name: moved(0, fraction)})
    both = {name: lambda words, value: moved(1, -fraction)(moved(0, fraction)(words, value), value)}
    assert not accepted(step, both)


@pytest.mark.parametrize("name", ["features.carry", "targets.carry"])
@pytest.mark.parametrize("by", [1, -1, 1 << 40])
def test_a_wrong_carry_of_an_input_is_rejected(step: Step, name: str, by: int) -> None:
    assert not accepted(step, {name: moved(2, by)})


@pytest.mark.parametrize("name", [RESIDUAL_PROJECTIONS, WORD_DIGITS, "residuals.digits"])
def test_words_that_follow_from_coins_are_rejected_if_wrong(step: Step, name: str) -> None:
    words = cheating(step)
    words.prove()
    honest = words.value(wire_of(step.statement, name)).flat[0].to_python()[0]
    assert not accepted(step, {name: set_to(0, 1 - honest)})


def test_residuals_are_not_hidden_by_misreported_projections(step: Step) -> None:
    changes: dict[str, Change] = {
        "fc1.values": lambda words, value: (
            words + Elements.of_python([9999] * words.size).reshape(*words.shape)
        ),
        RESIDUAL_PROJECTIONS: lambda words, value: Elements.zeros(words.shape),
    }
    assert not accepted(step, changes, gradient=implied(step, changes))


# --- the folded proof


def forge(levels: int) -> Callable[[Combined, Elements, Share], None]:
    """Adapt the stated values of so many levels, so that their sums are the ones that are due."""

    def prove(combined: Combined, masks: Elements, share: Share) -> None:
        left, right = combined.left, combined.right
        defect = left.dot(right) + combined.rest
        assert not defect.is_zero()
        for number in itertools.count():
            level = Level.of(left, right, masks)
            honest = level.polynomial()
            wrong = np.arange(honest.size) == 1 - level.first
            excess = Elements.of_integers(wrong.astype(np.int64)) * defect
            stated = honest - excess if number < levels else honest
            transcript = share(stated)
            if level.is_last:
                return
            point = transcript.point("point", level.points[-1])
            defect = folding.lagrange(level.points, point).dot(honest - stated)
            left, right = level.at(point)

    return prove


@pytest.mark.parametrize("levels", [0, 1, 2, 3, 9])
def test_a_forged_folded_proof_is_rejected(
    step: Step, monkeypatch: pytest.MonkeyPatch, levels: int
) -> None:
    wrong = moved_densely(step.gradient, 0.01)
    monkeypatch.setattr(folding, "prove", forge(levels))
    proof = cheating(step, gradient=wrong).prove()
    answers = answers_to(step, proof.packages, gradient=wrong)
    assert not accepts(answers)
    total = answers[0] + answers[1] + answers[2]
    # A cheat that adapts all levels is seen by the last product only.
    assert (total.rest == 0) == (levels == 9)


def test_values_that_are_changed_at_one_level_are_rejected(step: Step) -> None:
    form = ProofForm.of(step.statement)

    class Changed(Sharing):
        """Changes one value at one stage."""

        at = 0

        def share(self, words: Elements) -> Transcript:
            if len(self._sent) == self.at:
                words = Elements.of_python([words.to_python()[0] + 1, *words.to_python()[1:]])
            return super().share(words)

    for stage in range(len(form.sizes)):
        prover = cheating(step)
        sharing = prover.sharing
        prover.sharing = Changed(sharing.seeds, sharing.salt, sharing.transcript)
        prover.sharing.at = stage
        assert not accepts(answers_to(step, prover.prove().packages))


# --- what is sent


def test_stages_of_another_proof_are_rejected(step: Step) -> None:
    """Words of two proofs for two attempts, with leaf hashes that fit."""
    form = ProofForm.of(step.statement)
    first, second = (cheating(step, attempt=number).prove().packages for number in (0, 1))
    for stage in range(len(form.sizes)):
        start = 32 + 16 * sum(form.sizes[:stage])
        end = start + 16 * form.sizes[stage]
        one, other = (packages[1].held[1].sent for packages in (first, second))
        assert not accepts(
            answers_to(step, resent(first, form, one[:start] + other[start:end] + one[end:]))
        )


def test_swapped_words_are_rejected(step: Step) -> None:
    """Words of one stage in the place of another's, with leaf hashes that fit."""
    form = ProofForm.of(step.statement)
    packages = cheating(step).prove().packages
    sent = packages[1].held[1].sent
    swapped = bytearray(sent)
    later = 32 + 16 * form.sizes[0]
    swapped[32:48], swapped[later : later + 16] = sent[later : later + 16], sent[32:48]
    assert not accepts(answers_to(step, resent(packages, form, bytes(swapped))))


def resent(packages: Sequence[ProofPackage], form: ProofForm, sent: bytes) -> list[ProofPackage]:
    """Replace the component that is sent as words, and its leaf hashes."""
    part = ProofComponent(2, sent)
    hashes = list(packages[0].leaves.hashes)
    for place, leaf in part.leaf_hashes(form).items():
        hashes[place] = leaf
    return [
        replace(
            each,
            leaves=ProofLeaves(tuple(hashes)),
            held=tuple(part if held.index == 2 else held for held in each.held),
        )
        for each in packages
    ]


def test_holders_of_one_component_cannot_be_given_different_words(step: Step) -> None:
    form = ProofForm.of(step.statement)
    packages = list(cheating(step).prove().packages)
    sent = bytearray(packages[1].held[1].sent)
    sent[40] ^= 1
    part = ProofComponent(2, bytes(sent))
    packages[1] = replace(packages[1], held=(packages[1].held[0], part))
    with pytest.raises(
        ComponentMismatch, match="component 2 of the proof does not match its leaf 2"
    ):
        packages[1].verify(form)
    # With leaf hashes of its own the holder sees that they are not those of the others.
    packages[1] = resent(packages, form, bytes(sent))[1]
    packages[1].verify(form)
    assert packages[1].leaves != packages[2].leaves


def test_a_seed_that_does_not_match_its_leaf_is_refused(step: Step) -> None:
    form = ProofForm.of(step.statement)
    package = cheating(step).prove().packages[0]
    wrong = replace(package, held=(ProofComponent(0, bytes(32)), package.held[1]))
    with pytest.raises(ComponentMismatch, match="component 0"):
        wrong.verify(form)


def test_shares_of_another_gradient_or_input_are_rejected(step: Step) -> None:
    packages = cheating(step).prove().packages
    other = step.gradient.copy()
    other[0] += 1 << 40
    assert not accepts(answers_to(step, packages, gradient=other))
    inputs = step.inputs.copy()
    inputs[0] += 1
    assert not accepts(answers_to(step, packages, inputs=inputs))
