"""Steps of small models, their statements, honest and cheating provers, and verification."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from opfl_chain.learning.layout import ParameterLayout, convolution, dense
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.learning.local_step import LocalStep, loss_gradient
from opfl_chain.learning.model import Model, relu_shapes
from opfl_chain.learning.operations.table import Operations, Recording
from opfl_chain.learning.proved_step import logit_errors, mask_words, state_step
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.numerics.field import Elements
from opfl_chain.protocol.inputs import InputFormat
from opfl_chain.protocol.policy import ProvedReplay
from opfl_chain.protocol.proof.answers import Query, accepts
from opfl_chain.protocol.proof.closing import TOLERANCE_BITS, Statement, Tolerance
from opfl_chain.protocol.proof.evaluation import (
    Evaluation,
    as_integers,
    gradient_value,
    set_inputs,
)
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.proof.package import ProofForm, ProofPackage
from opfl_chain.protocol.proof.prover import Prover
from opfl_chain.protocol.proof.statement import Words
from opfl_chain.protocol.ring import FixedPoint
from opfl_chain.protocol.shares import SharedVector
from opfl_chain.rules.proved_rule import ProvedRule

CONTEXT = b"\7" * 32
ENTROPY = b"\x2a" * 32
GRADIENTS = FixedPoint(22, 64 << 22)
RANGE = (-0.5, 3.0)
FRACTION_BITS = 22
TOLERANCE = Tolerance(1 << 20, int(5e-8 * 2**TOLERANCE_BITS))
"""1e-6 of the norm, and 5e-8."""
POLICY = default_policy(LENET_61706, rule="proved")
assert POLICY.proof is not None
RULES = POLICY.proof
"""The bits of default policies, for a batch of one."""

Change = Callable[[Elements, Evaluation], Elements]
"""Changes honest words; it may look at all words before them."""


@dataclass(frozen=True)
class SmallModel(Model):
    """One convolution with ReLU and pooling, and two dense layers: 173 parameters."""

    frozen: str = ""
    name: str = "small"
    input_shape: tuple[int, ...] = (6, 6, 1)
    classes: int = 4

    @cached_property
    def layout(self) -> ParameterLayout:
        layers = (*convolution("conv", 3, 1, 2), *dense("fc1", 18, 6), *dense("fc2", 6, 4))
        return ParameterLayout(layers).freeze(self.frozen)

    def logits(self, parameters: Mapping[str, Any], examples: Any, operations: Operations) -> Any:
        def of(layer: str) -> tuple[Any, Any]:
            return parameters[f"{layer}.weight"], parameters[f"{layer}.bias"]

        values = operations.convolution(examples, *of("conv"), padding=1, name="conv")
        values = operations.average_pool(operations.relu(values, name="conv"), name="conv")
        values = operations.dense(values.reshape(values.shape[0], -1), *of("fc1"), name="fc1")
        return operations.dense(operations.relu(values, name="fc1"), *of("fc2"), name="fc2")


SMALL = SmallModel()


@dataclass(frozen=True, eq=False)
class Step:
    """A step of a model with everything that both sides know about it."""

    model: Model
    weights: Mapping[str, NDArray[np.float32]]
    examples: NDArray[np.float32]
    labels: NDArray[np.int64]
    statement: Statement
    inputs: NDArray[np.int64]
    gradient: NDArray[np.int64]

    @cached_property
    def advised(self) -> Evaluation:
        """The honest values of all words of the step itself."""
        return advise(self.statement, self.inputs)

    @cached_property
    def masks(self) -> dict[str, NDArray[np.bool_]]:
        """The sides of all ReLUs, as the advice has them."""
        return masks_of(self.model, self.statement, self.advised, len(self.labels))

    def implied_gradient(self) -> NDArray[np.float64]:
        """Return the gradient of the mean loss that the advice implies."""
        found = gradient_value(self.statement, self.advised).to_floats()
        lift = self.words("loss.lift").to_floats().argmax()
        return found * 2.0 ** -(self.statement.gradient_bits + float(lift)) / len(self.labels)

    def words(self, name: str) -> Elements:
        """Return the honest words of one group."""
        return self.advised(wire_of(self.statement, name))

    def with_statement(self, statement: Statement) -> Step:
        """Return the same step under another statement."""
        return replace(self, statement=statement)


def wire_of(statement: Statement, name: str) -> Any:
    """Return the wire of a group of words."""
    return next(group.wire for group in statement.words if group.name == name)


def advise(statement: Statement, inputs: NDArray[np.int64]) -> Evaluation:
    """Evaluate all words of the step itself."""
    value = Evaluation()
    set_inputs(statement, value, as_integers(inputs.view(np.uint64)))
    for group in statement.stage(0):
        value.set(group.wire, group.fill(value))
    return value


def masks_of(
    model: Model, statement: Statement, value: Evaluation, batch: int
) -> dict[str, NDArray[np.bool_]]:
    """Return the sides of all ReLUs of an evaluation."""
    return {
        name: mask_words(statement, value, name).reshape(shape)
        for name, shape in relu_shapes(model, batch).items()
    }


def input_format(model: Model, batch: int) -> InputFormat:
    """Return the form of the input of a step."""
    shape = (batch, *model.input_shape)
    return InputFormat(shape, (batch,), model.classes, FRACTION_BITS, RANGE)


def random_weights(model: Model, seed: int) -> dict[str, NDArray[np.float32]]:
    """Return weights of the usual size."""
    rng = np.random.default_rng(seed)
    found = {}
    for each in model.layout:
        fan = max(1, int(np.prod(each.shape[:-1])))
        found[each.name] = (rng.standard_normal(each.shape) / np.sqrt(fan)).astype("f4")
    return found


def state(
    model: Model,
    weights: Mapping[str, NDArray[np.float32]],
    batch: int,
    rules: ProvedReplay | None = None,
    tolerance: Tolerance = TOLERANCE,
) -> Statement:
    """Return the statement of a step, by the rules for its batch unless others are given."""
    form = input_format(model, batch)
    options = ProvedRule().replay_options(batch)
    rules = rules or RULES.model_copy(update=dict(options))
    return state_step(model, weights, rules, form, GRADIENTS, rules.largest_lift, tolerance)


@cache
def honest_step(
    model: Model = SMALL, batch: int = 1, seed: int = 1, lead: float = 0.0, rise: float = 0.0
) -> Step:
    """Return an honest step.

    The logit of the first label is raised by so many powers of two, and all logits by ``rise``.
    """
    weights = random_weights(model, seed)
    rng = np.random.default_rng([seed, batch])
    examples = rng.uniform(*RANGE, (batch, *model.input_shape)).astype(np.float32)
    labels = rng.integers(0, model.classes, batch)
    last = model.layout.names[-1]
    weights[last] = weights[last] + np.float32(rise)
    weights[last][labels[0]] += np.float32(lead * np.log(2))
    statement = state(model, weights, batch)
    step = LocalStep(model, torch.device("cpu"))
    inputs = input_format(model, batch).encode(examples, labels)
    value = advise(statement, inputs)
    masks = masks_of(model, statement, value, batch)
    errors = logit_errors(statement, value) / batch
    gradient = step.run(weights, examples, labels, masks=masks, errors=errors).gradient
    words = GRADIENTS.encode_array("gradient", gradient)
    return Step(model, weights, examples, labels, statement, inputs, words)


@cache
def lenet_step(batch: int) -> Step:
    """Return an honest step of LeNet-61,706."""
    return honest_step(LENET_61706, batch)


def exact_gradient(step: Step) -> NDArray[np.float64]:
    """Return the gradient by torch in float64, along the masks of the advice."""
    ring = FixedPoint(FRACTION_BITS)
    tensors = {
        each.name: torch.tensor(
            ring.nearest(step.weights[each.name]).astype(np.float64)
        ).requires_grad_(each.trainable)
        for each in step.model.layout
    }
    sides = {name: torch.tensor(mask.astype(np.float64)) for name, mask in step.masks.items()}
    examples = torch.tensor(ring.nearest(step.examples).astype(np.float64))
    logits = step.model.logits(tensors, examples, Recording(Operations("torch"), sides))
    errors = loss_gradient(logits.detach(), torch.tensor(step.labels))
    names = step.model.layout.trainable.names
    found = torch.autograd.grad(logits, [tensors[name] for name in names], errors)
    return np.concatenate([each.numpy().ravel() for each in found])


def distance(found: NDArray[Any], expected: NDArray[Any]) -> float:
    """Return the distance of two vectors as a part of the second's norm."""
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def components(words: NDArray[np.int64], seed: int) -> Sequence[NDArray[np.uint64]]:
    """Share ring words."""
    return SharedVector.split(words, bytes([seed]) * 32, bytes([seed + 1]) * 32).components


class Cheat(Prover):
    """Changes words of some groups; all words after them follow from the changed ones."""

    changes: Mapping[str, Change]

    def advise(self, group: Words) -> Elements:
        found = super().advise(group)
        change = self.changes.get(group.name)
        return change(found, self.value).reshape(*found.shape) if change else found

    def put(self, name: str, words: Elements) -> None:
        change = self.changes.get(name)
        super().put(name, change(words, self.value).reshape(*words.shape) if change else words)


def cheating(
    step: Step,
    changes: Mapping[str, Change] | None = None,
    *,
    gradient: NDArray[np.int64] | None = None,
    inputs: NDArray[np.int64] | None = None,
    **options: Any,
) -> Cheat:
    """Return a prover of a step that changes words, the committed gradient or the input."""
    prover = Cheat(
        step.statement,
        options.pop("context", CONTEXT),
        options.pop("entropy", ENTROPY),
        components(step.gradient if gradient is None else gradient, 1),
        components(step.inputs if inputs is None else inputs, 5),
        **options,
    )
    prover.changes = changes or {}
    return prover


def answers_to(
    step: Step,
    packages: Sequence[ProofPackage],
    *,
    gradient: NDArray[np.int64] | None = None,
    inputs: NDArray[np.int64] | None = None,
    context: bytes = CONTEXT,
    tossed: Sequence[bytes] = (),
) -> list[Answer]:
    """Let members decode, verify and answer; both holders of a component answer the same."""
    form = ProofForm.of(step.statement)
    of_gradient = components(step.gradient if gradient is None else gradient, 1)
    of_input = components(step.inputs if inputs is None else inputs, 5)
    found: dict[int, Answer] = {}
    leaves = set()
    for rank, sent in enumerate(packages):
        package = ProofPackage.decode(sent.encode(), form, rank)
        package.verify(form)
        leaves.add(package.leaves.hashes)
        query = Query.of(step.statement, context, package.leaves, tossed)
        for part in package.held:
            answer = query.answer(part, of_gradient[part.index], of_input[part.index])
            sent_answer = Answer.decode(answer.encode())
            assert found.setdefault(part.index, sent_answer) == sent_answer
    assert len(leaves) == 1
    return [found[index] for index in range(3)]


def accepted(step: Step, changes: Mapping[str, Change] | None = None, **options: Any) -> bool:
    """Return the verdict of members on a step in which a client cheats."""
    given = {name: options[name] for name in ("gradient", "inputs") if name in options}
    proof = cheating(step, changes, **options).prove()
    return accepts(answers_to(step, proof.packages, **given))


def without(step: Step, *names: str) -> Step:
    """Return a step whose statement lacks some equations."""
    statement = step.statement
    missing = set(names) - {equation.name for equation in statement.equations}
    assert not missing, missing
    kept = tuple(each for each in statement.equations if each.name not in names)
    return step.with_statement(replace(statement, equations=kept))


def moved(place: int, by: int) -> Change:
    """Add an integer to one word."""

    def change(words: Elements, value: Evaluation) -> Elements:
        flat = words.to_python()
        flat[place] += by
        return Elements.of_python(flat)

    return change


def set_to(place: int, integer: int) -> Change:
    """Set one word."""

    def change(words: Elements, value: Evaluation) -> Elements:
        flat = words.to_python()
        flat[place] = integer
        return Elements.of_python(flat)

    return change
