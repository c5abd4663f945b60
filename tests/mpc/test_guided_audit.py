"""A guided replay of whole LeNet steps: honest advice passes, dishonest advice gains nothing."""

import secrets

import numpy as np
import pytest
from guided_step import ADVICE, LARGEST_LIFT, MODEL, GuidedStep, guided_boundary, guided_replay

from opfl_chain.mpc.audit.contribution import Contribution
from opfl_chain.mpc.audit.judge import audit
from opfl_chain.mpc.local import MemoryCommittee
from opfl_chain.protocol.shares import SharedVector

FORM = GuidedStep().input_format


@pytest.fixture(scope="module")
def committee():
    with MemoryCommittee() as committee:
        yield committee


@pytest.fixture(scope="module")
def step():
    return GuidedStep()


def shared(words):
    return SharedVector.split(words, secrets.token_bytes(32), secrets.token_bytes(32))


def held(vector, rank):
    first, second = vector.held_by(rank)
    return np.asarray(first).view(np.uint64), np.asarray(second).view(np.uint64)


def verdicts(committee, weights, cases, boundary=None):
    parts = [[shared(words) for words in case] for case in cases]

    def member(session):
        contributions = [
            Contribution(*(held(part, session.rank) for part in case)) for case in parts
        ]
        bounds = boundary or guided_boundary()
        return audit(session, guided_replay, weights, bounds, FORM, ADVICE, contributions)

    found = committee.each(member)
    assert found[0] == found[1] == found[2]
    return found[0]


def verdict(committee, step, gradient=None, training_input=None, advice=None, **fields):
    case = [
        step.words if gradient is None else gradient,
        step.training_input if training_input is None else training_input,
        step.advice_words if advice is None else advice,
    ]
    return verdicts(committee, step.weights, [case], guided_boundary(**fields))[0]


@pytest.mark.parametrize("label", [0, 7])
@pytest.mark.parametrize(("certainty", "lift"), [(0, 0), (5, 7), (10, 14), (15.5, 22), (20, 23)])
def test_honest_steps_pass_however_certain(committee, certainty, lift, label):
    step = GuidedStep(3, certainty, label)
    assert step.advice.lift == (0 if label else lift)
    assert verdict(committee, step)


@pytest.mark.parametrize(
    "cheat",
    [
        lambda words: np.zeros_like(words),
        lambda words: -words,
        lambda words: 2 * words,
        lambda words: words + words // 1000,
        lambda words: np.roll(words, 1),
        lambda words: words + np.where(np.arange(words.size) == 5, np.abs(words).max() // 50, 0),
        lambda words: words + np.where(np.arange(words.size) == 5, -(2**63), 0),
    ],
    ids=["nothing", "reversed", "doubled", "a thousandth", "reordered", "one coordinate", "far"],
)
@pytest.mark.parametrize("certainty", [0, 10])
def test_other_gradients_fail(committee, certainty, cheat):
    step = GuidedStep(3, certainty)
    assert not verdict(committee, step, gradient=cheat(step.words))


def test_contributions_are_told_apart(committee, step):
    cases = [
        [step.words, step.training_input, step.advice_words],
        [-step.words, step.training_input, step.advice_words],
    ]
    assert verdicts(committee, step.weights, cases) == [True, False]


def changed(words, place, value):
    other = words.copy()
    other[place] = value
    return other


def test_a_mask_that_is_not_a_bit_fails(committee, step):
    unit = int(np.flatnonzero(step.advice.masks)[0])
    for value in (2, -1, 1 << 62):
        assert not verdict(committee, step, advice=changed(step.advice_words, unit, value))


def test_masks_on_the_wrong_side_fail(committee, step):
    values = np.concatenate([v.ravel() for v in step.result.pre_activations.values()])
    for unit in (int(values.argmax()), int(values.argmin())):
        flipped = 1 - step.advice_words[unit]
        assert not verdict(committee, step, advice=changed(step.advice_words, unit, flipped))


def test_a_mask_may_be_wrong_within_the_tolerance(committee, step):
    """A dead unit's value of zero may count as positive: its gradient follows the mask."""
    values = np.concatenate([v.ravel() for v in step.result.pre_activations.values()])
    unit = int(np.abs(values).argmin())
    flipped = changed(step.advice_words, unit, 1 - step.advice_words[unit])
    tolerance = int(abs(values[unit]) * 2**22) + 16
    loose = {"bounds": [1 << 24] * 23, "infinity": 1 << 30}
    assert verdict(committee, step, advice=flipped, mask_tolerance=tolerance, **loose)


@pytest.mark.parametrize("lifts", [[], [0, 1], [3, 3]], ids=["none", "two", "a two"])
def test_one_lift_must_be_chosen(committee, step, lifts):
    advice = step.advice_words.copy()
    advice[ADVICE.lifts] = np.bincount(lifts, minlength=LARGEST_LIFT + 2)
    assert not verdict(committee, step, advice=advice)


def test_a_lift_too_high_fails(committee, step):
    assert step.advice.lift == 0
    advice = step.advice_words.copy()
    advice[ADVICE.lifts] = np.eye(LARGEST_LIFT + 2, dtype=np.int64)[3]
    assert not verdict(committee, step, advice=advice)


def test_a_lift_too_low_fails(committee):
    """It would make the replay coarser, and the bound with it."""
    step = GuidedStep(3, 10)
    advice = step.advice_words.copy()
    advice[ADVICE.lifts] = np.eye(LARGEST_LIFT + 2, dtype=np.int64)[step.advice.lift - 1]
    assert not verdict(committee, step, advice=advice)


def test_a_step_with_nothing_to_learn_is_zero(committee):
    step = GuidedStep(3, 20)
    assert step.advice.lift == LARGEST_LIFT + 1
    assert not step.words.any()
    tiny = np.where(np.arange(step.words.size) == 7, 1 << 14, 0)  # 1.5e-11
    assert verdict(committee, step, gradient=tiny)
    assert not verdict(committee, step, gradient=2 * tiny)


def test_nothing_to_learn_must_be_true(committee):
    step = GuidedStep(3, 10)
    advice = step.advice_words.copy()
    advice[ADVICE.lifts] = np.eye(LARGEST_LIFT + 2, dtype=np.int64)[-1]
    assert not verdict(committee, step, gradient=np.zeros_like(step.words), advice=advice)


@pytest.mark.parametrize(
    ("off", "passes"),
    [(-1 / 16, False), (1 / 16, True), (3, False), (192.5, False), (2**40, False)],
    ids=[
        "too low",
        "a little too high",
        "too high for the reciprocal",
        "where the polynomial is one again",
        "beyond the ring",
    ],
)
def test_ceilings_are_near_the_largest_logit(committee, off, passes):
    """The ceiling does not matter, as long as the sum of the exponentials stays above one."""
    step = GuidedStep()
    advice = step.advice_words.copy()
    advice[ADVICE.ceilings] += int(off * (1 << 22))
    loose = {"bounds": [1 << 31] * 23, "infinity": 1 << 31}
    assert verdict(committee, step, advice=advice, **({} if passes else loose)) is passes


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, (1 << 22) + 1), (0, -1), (784, 1 << 30), (784, 0), (790, 1 << 22), (790, 1)],
    ids=["too bright", "too dark", "a thousand", "no class", "two classes", "a quantum"],
)
def test_inputs_that_are_none_fail(committee, step, place, value):
    """With a boundary that accepts any gradient."""
    assert step.labels == [0]
    loose = {"bounds": [1 << 31] * 23, "infinity": 1 << 31, "allowance_shift": 1}
    loose |= {"mask_tolerance": 1 << 40, "ceiling_tolerance": 1 << 40}
    assert verdict(committee, step, **loose)
    wrong = changed(step.training_input, place, value)
    assert not verdict(committee, step, training_input=wrong, **loose)


def test_layout_of_advice():
    assert ADVICE.words == ADVICE.units + LARGEST_LIFT + 3
    assert MODEL.layout.size == 61706
