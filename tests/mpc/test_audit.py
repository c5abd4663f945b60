"""Algorithm 1 on a whole LeNet step: honest steps pass, everything else fails."""

import secrets
from functools import cache

import jax
import numpy as np
import pytest

from opfl_chain.learning.lenet import LENET_61706 as MODEL
from opfl_chain.learning.operations.table import Operations
from opfl_chain.mpc.audit.contribution import Contribution, TreeOpening
from opfl_chain.mpc.audit.judge import audit, open_trees
from opfl_chain.mpc.local import MemoryCommittee
from opfl_chain.mpc.replay.compiler import compile_program
from opfl_chain.mpc.replay.programs import replay_program
from opfl_chain.mpc.session.executable import MpcOptions
from opfl_chain.protocol.commitments import Subject, salted_words, tree_commitment
from opfl_chain.protocol.inputs import InputFormat
from opfl_chain.protocol.policy import PAPER_GRID
from opfl_chain.protocol.ring import FixedPoint
from opfl_chain.protocol.shares import SharedVector
from opfl_chain.rules.paper import PaperBoundary

SALT = bytes(range(32))
LOSS_SCALE = 64
FORM = InputFormat((1, 28, 28, 1), (1,), 10, 22, (0.0, 1.0))


@pytest.fixture(scope="module")
def committee():
    with MemoryCommittee() as committee:
        yield committee


@cache
def replays(count):
    return compile_program(replay_program(MODEL, 1, float(LOSS_SCALE), count), MpcOptions())


@pytest.fixture(scope="module")
def weights():
    rng = np.random.default_rng(0)
    return {
        each.name: rng.uniform(-each.bound, each.bound, each.shape).astype(np.float32)
        for each in MODEL.layout
    }


@pytest.fixture(scope="module")
def step(weights):
    """The words of an honest gradient and of its training input."""
    image = np.random.default_rng(1).random((1, 28, 28, 1), np.float32)
    label = np.array([3])

    def loss(parameters):
        logits = MODEL.logits(parameters, image, Operations("jax"))
        return -jax.nn.log_softmax(logits)[0, 3]

    gradient = jax.grad(loss)(weights)
    named = {name: np.asarray(gradient[name], np.float64) for name in MODEL.layout.names}
    words = FixedPoint(22, LOSS_SCALE).encode(named)
    return words, FORM.encode(image, label)


def boundary(**bounds):
    count = len(PAPER_GRID)
    loose = {"absolute": [2**12] * count, "relative": [1] * count, "infinity": 2**13}
    return PaperBoundary.from_mapping(
        {
            "policy_hash": "0x" + "00" * 32,
            "spu_version": "0.9.5",
            "coordinates": MODEL.layout.size,
            "grid": list(PAPER_GRID),
            "epsilon": 2**12,
            **loose,
            **bounds,
        }
    )


def shared(words):
    return SharedVector.split(words, secrets.token_bytes(32), secrets.token_bytes(32))


def held(vector, rank):
    first, second = vector.held_by(rank)
    return np.asarray(first).view(np.uint64), np.asarray(second).view(np.uint64)


def verdict(committee, weights, gradient, training_input, trees=(), bounds=None):
    parts = shared(gradient), shared(training_input)
    openings = [
        (subject, commitment, shared(salted_words(words, SALT)))
        for subject, commitment, words in trees
    ]

    def member(session):
        contribution = Contribution(
            *(held(part, session.rank) for part in parts),
            trees=[
                TreeOpening(subject, commitment, held(opening, session.rank))
                for subject, commitment, opening in openings
            ],
        )
        return audit(session, replays, weights, bounds or boundary(), FORM, None, [contribution])

    verdicts = committee.each(member)
    assert verdicts[0] == verdicts[1] == verdicts[2]
    return verdicts[0][0]


def test_honest_step_passes(committee, weights, step):
    assert verdict(committee, weights, *step)


@pytest.mark.parametrize(
    "cheat",
    [
        lambda words: np.zeros_like(words),
        lambda words: -words,
        lambda words: 2 * words,
        lambda words: np.roll(words, 1),
        lambda words: words + np.where(np.arange(words.size) == 5, 2**14, 0),
        lambda words: words + np.where(np.arange(words.size) == 5, -(2**63), 0),
    ],
    ids=["nothing", "reversed", "amplified", "reordered", "one coordinate", "far away"],
)
def test_other_gradients_fail(committee, weights, step, cheat):
    gradient, training_input = step
    assert not verdict(committee, weights, cheat(gradient), training_input)


def test_several_contributions_are_told_apart(committee, weights, step):
    gradient, training_input = step
    parts = [shared(words) for words in (gradient, -gradient, gradient)]
    inputs = [shared(words) for words in (training_input, training_input, training_input[::-1])]

    def member(session):
        contributions = [
            Contribution(held(part, session.rank), held(own_input, session.rank))
            for part, own_input in zip(parts, inputs, strict=True)
        ]
        return audit(session, replays, weights, boundary(), FORM, None, contributions)

    assert committee.each(member) == [[True, False, False]] * 3


def test_gradient_of_another_input_fails(committee, weights, step):
    gradient, training_input = step
    assert not verdict(committee, weights, gradient, np.roll(training_input, 7))


def test_gradient_of_another_model_fails(committee, weights, step):
    other = {name: -array for name, array in weights.items()}
    assert not verdict(committee, other, *step)


def test_trees_are_opened_in_the_same_bit(committee, weights, step):
    gradient, training_input = step
    good = [
        (subject, tree_commitment(subject, SALT, words), words)
        for subject, words in ((Subject.GRADIENT, gradient), (Subject.INPUT, training_input))
    ]
    assert verdict(committee, weights, *step, trees=good)
    wrong = [good[0], (Subject.INPUT, good[0][1], training_input)]
    assert not verdict(committee, weights, *step, trees=wrong)


def test_gate_one_alone(committee, step):
    gradient, _ = step
    commitment = tree_commitment(Subject.GRADIENT, SALT, gradient)
    for words, expected in ((gradient, True), (gradient + 1, False)):
        parts = shared(salted_words(words, SALT))
        verdicts = committee.each(
            lambda session, parts=parts: open_trees(
                session, [TreeOpening(Subject.GRADIENT, commitment, held(parts, session.rank))]
            )
        )
        assert verdicts == [[expected]] * 3
