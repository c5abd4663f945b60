"""The statement of a training step, from the policy, the weights and the model's own operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.learning.model import Model
from opfl_chain.learning.operations.nonlinear import mask_name
from opfl_chain.learning.operations.operation import Layer, Proved, PublicParameter
from opfl_chain.learning.operations.table import OPERATIONS, Operations
from opfl_chain.learning.registry import model_of
from opfl_chain.numerics.field import Elements
from opfl_chain.protocol.advice import lift_of
from opfl_chain.protocol.errors import memory_for
from opfl_chain.protocol.inputs import InputFormat
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.closing import Commitment, Statement, Tolerance, seal
from opfl_chain.protocol.proof.evaluation import Evaluation
from opfl_chain.protocol.proof.package import ProofForm
from opfl_chain.protocol.proof.statement import Builder, Rules, Values
from opfl_chain.protocol.proof.wires import Quadratic, StatementError, Wire
from opfl_chain.protocol.ring import FixedPoint

_LEAST_LIFTED_BITS = 9
"""The squared errors of the logits add up to at least 2^-9, unless the lift is the largest."""
_LIFT, _ERRORS = "loss.lift", "loss.errors"
"""The names of words."""
_ERROR_INTEGER_BITS = 12
"""The integer bits of the sum of the squared errors of the logits."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """An activation of a traced model: a wire, with what arrays of all frameworks share."""

    wire: Wire
    tape: _Tape
    needs_errors: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self.wire.shape

    def reshape(self, *shape: int) -> Tensor:
        before = self.wire.shape
        result = self.wire.reshape(*shape)
        return self.tape.record([self], result, lambda errors: [errors.reshape(*before)])

    def __add__(self, other: Tensor) -> Tensor:
        bits = max(self.wire.bits, other.wire.bits)
        result = self.wire.finer(bits) + other.wire.finer(bits)
        return self.tape.record([self, other], result, lambda errors: [errors, errors])


@dataclass
class _Tape:
    """The operations of a traced model, in forward order."""

    entries: list[tuple[Sequence[Tensor], Tensor, Callable[[Wire], Sequence[Wire]]]] = field(
        default_factory=list
    )

    def record(
        self,
        inputs: Sequence[Tensor],
        result: Wire,
        backward: Callable[[Wire], Sequence[Wire]],
        *,
        trains: bool = False,
    ) -> Tensor:
        """Record an operation; ``trains`` if it has a trainable parameter."""
        needs_errors = trains or any(each.needs_errors for each in inputs)
        tensor = Tensor(result, self, needs_errors)
        if needs_errors:
            self.entries.append((inputs, tensor, backward))
        return tensor

    def propagate(self, last: Tensor, errors: Wire) -> None:
        """Propagate errors back to all operations before the last one."""
        found: dict[int, Wire] = {id(last): errors}
        for inputs, result, backward in reversed(self.entries):
            if (own := found.pop(id(result), None)) is None:
                continue
            for each, its_errors in zip(inputs, backward(own), strict=True):
                if not each.needs_errors:
                    continue
                known = found.get(id(each))
                found[id(each)] = its_errors if known is None else _added(known, its_errors)


def _added(first: Wire, second: Wire) -> Wire:
    bits = max(first.bits, second.bits)
    return first.finer(bits) + second.finer(bits)


class ProofOperations(Operations):
    """All operations of the table as equations of a statement."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self.tape = _Tape()

    def apply(self, operation: str, *arrays: Any, name: str, **options: Any) -> Tensor:
        given = [each.wire if isinstance(each, Tensor) else each for each in arrays]
        inputs = [each for each in arrays if isinstance(each, Tensor)]
        layer = Layer(name, self._builder)
        proved: Proved = OPERATIONS[operation].prove(layer, *given, **options)
        trains = any(isinstance(each, PublicParameter) and each.trainable for each in arrays)
        return self.tape.record(inputs, proved.result, proved.backward, trains=trains)


def statement_of(
    policy: Policy, tolerance: Tolerance, weights: Mapping[str, NDArray[np.float32]]
) -> Statement:
    """Return the statement of one step of a policy at these weights."""
    rules = policy.proof
    if rules is None:
        raise StatementError(f"a policy with a {policy.replay.kind} replay has no proofs")
    with memory_for("the statement of a step"):
        return state_step(
            model_of(policy),
            weights,
            rules,
            policy.input_format,
            policy.fixed_point,
            policy.largest_lift,
            tolerance,
        )


def state_step(
    model: Model,
    weights: Mapping[str, NDArray[np.float32]],
    rules: Rules,
    inputs: InputFormat,
    gradients: FixedPoint,
    largest_lift: int,
    tolerance: Tolerance,
) -> Statement:
    """Return the statement of one step of a model at these weights."""
    builder = Builder(rules)
    ring = FixedPoint(inputs.fraction_bits)
    parameters = {
        each.name: PublicParameter(
            each.name,
            ring.encode_array(each.name, weights[each.name]).reshape(each.shape),
            inputs.fraction_bits,
            each.trainable,
        )
        for each in model.layout
    }
    features, targets = _inputs(builder, inputs)
    operations = ProofOperations(builder)
    examples = Tensor(features, operations.tape, needs_errors=False)
    logits: Tensor = model.logits(parameters, examples, operations)
    probabilities = OPERATIONS["softmax"].prove(Layer("softmax", builder), logits.wire).result
    errors, factor = _loss(builder, logits.wire, probabilities, targets, largest_lift)
    operations.tape.propagate(logits, errors)
    names = [each.name for each in model.layout if each.trainable]
    bits = gradients.words_per_unit.bit_length() - 1
    committed = Commitment(bits, inputs.feature_shape[0])
    return seal(builder, names, factor, committed, tolerance)


def proof_form(policy: Policy, tolerance: Tolerance) -> ProofForm:
    """Return the form of the proofs of a policy, which depends on no weight."""
    layout = model_of(policy).layout
    nothing = {each.name: np.zeros(each.shape, np.float32) for each in layout}
    return ProofForm.of(statement_of(policy, tolerance, nothing))


def mask_words(statement: Statement, value: Evaluation, layer: str) -> NDArray[np.bool_]:
    """Return the sides of a layer's ReLU, as the statement has them."""
    wire = next(group.wire for group in statement.words if group.name == mask_name(layer))
    return value(wire).to_floats() > 0


def logit_errors(statement: Statement, value: Evaluation) -> NDArray[np.float64]:
    """Return the errors of the logits of each example, as the statement has them."""
    wires = {group.name: group.wire for group in statement.words}
    errors = wires[_ERRORS]
    lift = int(value(wires[_LIFT]).to_floats().argmax())
    return value(errors).to_floats() * 2.0 ** -(errors.bits + lift)


def _inputs(builder: Builder, inputs: InputFormat) -> tuple[Wire, Wire]:
    """State that features are in their range, and that targets are one-hot."""
    bits = inputs.fraction_bits
    features = builder.ring("features", 0, inputs.feature_shape, bits)
    low, high = inputs.feature_bounds
    if np.isfinite(inputs.feature_range).all():
        size_bits = (high - low).bit_length()
        below = builder.nonnegative("features.low", features.plus(-low).quadratic, size_bits)
        upside_down = features.times(-1).plus(high).quadratic
        above = builder.nonnegative("features.high", upside_down, size_bits)
        features = features.bounded(max(abs(low) + below, abs(high) + above))
    shape = (inputs.label_shape[0], inputs.classes)
    if inputs.target_words != inputs.label_shape[0] * inputs.classes:
        raise StatementError(
            f"labels have shape {inputs.label_shape}, a proof takes one label for each example"
        )
    targets = builder.ring("targets", inputs.feature_words, shape, bits)
    one = 1 << bits
    builder.exact("targets.one-hot", targets * targets - targets.finer(2 * bits).quadratic)
    builder.exact("targets.sum", targets.sum(-1).plus(-one).quadratic)
    return features, targets.bounded(one)


def _loss(
    builder: Builder, logits: Wire, probabilities: Wire, targets: Wire, largest_lift: int
) -> tuple[Wire, Wire]:
    """State the errors of the logits, scaled up by a power of two that the client chooses.

    The label's error is minus the sum of the others, so that it is as exact as they are. The lift
    must not be too small, or rounding would hide a cheat: the errors have a least size.
    """
    rules, lifts = builder.rules, largest_lift + 1

    def lift(value: Values) -> Elements:
        reals = value(logits).to_floats() * 2.0**-logits.bits
        labels = value(targets).to_floats().argmax(1)
        chosen = min(lift_of(reals, labels, largest_lift), largest_lift)
        return Elements.of_integers((np.arange(lifts) == chosen).astype(np.int64))

    chosen = builder.bits(_LIFT, (lifts,), lift)
    builder.exact("loss.one lift", chosen.sum(0).plus(-1).quadratic)
    powers = (np.int64(1) << np.arange(lifts, dtype=np.int64))[:, None]
    factor = chosen.reshape(1, lifts).matrix(powers, 0).bounded(1 << largest_lift).reshape(1)
    total = probabilities.sum(-1).reshape(-1, 1).broadcast(probabilities.shape)
    apart = builder.exactly(
        "loss.apart",
        probabilities.finer(probabilities.bits + targets.bits).quadratic - targets * total,
        probabilities.bits,
    )
    spread = factor.reshape(1, 1).broadcast(apart.shape)
    errors = builder.rounded(_ERRORS, spread * apart, rules.error_bits)
    bits = 2 * rules.error_bits
    last = chosen.gather(np.array(lifts - 1)).times(-1).plus(1)
    least = last.times(1 << (bits - _LEAST_LIFTED_BITS))
    squares = Quadratic(None, (errors * errors).products, (), bits)
    builder.counted(
        "loss.size", squares - Quadratic(least, (), (), bits), bits + _ERROR_INTEGER_BITS
    )
    # The digits show that the squares add up to less than 2^(bits + 13), as integers.
    return errors.bounded(1 << (rules.error_bits + _ERROR_INTEGER_BITS // 2 + 1)), factor
