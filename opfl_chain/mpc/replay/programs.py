"""Replay programs: the gradient of a training step, on a secret input and public weights.

A plain replay computes the step by itself. A guided replay takes the path that the client advises
and returns what is needed to check the advice: masks replace the comparisons of ReLUs, ceilings the
search for the largest logit, and the lift scales the loss by a power of two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from opfl_chain.learning.model import Model, relu_shapes, relu_units
from opfl_chain.learning.operations.nonlinear import exponential, reciprocal
from opfl_chain.learning.operations.table import Operations, Recording
from opfl_chain.mpc.replay.arrays import (
    ARGUMENTS,
    CEILINGS,
    EXAMPLES,
    GRADIENT,
    LIFTS,
    MASKS,
    PRE_ACTIVATIONS,
    TARGETS,
    TOTALS,
)
from opfl_chain.mpc.session.errors import CompilationFailed
from opfl_chain.mpc.session.executable import Input, Visibility
from opfl_chain.mpc.session.shares import DTYPES

Arrays = Mapping[str, Any]
LogitsOf = Callable[[Mapping[str, Any]], tuple[Any, Any]]
"""Maps parameters to logits and auxiliary values."""
Difference = Callable[[Any], Any]
"""Maps logits to the cotangent: softmax minus target, times the loss scale."""


@dataclass(frozen=True)
class Program:
    """`function` takes all inputs by name and returns all outputs by name.

    It is traced with 64-bit types enabled. Arrays that it closes over become constants of the code,
    which must not exceed 2 GB: pass weights as inputs.
    """

    name: str
    function: Callable[[dict[str, Any]], Arrays]
    inputs: tuple[Input, ...]

    def __post_init__(self) -> None:
        names = [each.name for each in self.inputs]
        if len(set(names)) != len(names):
            raise CompilationFailed(self.name, f"inputs are not unique: {', '.join(names)}")
        for each in self.inputs:
            if each.dtype not in DTYPES:
                allowed = ", ".join(DTYPES)
                raise CompilationFailed(
                    self.name, f"input {each.name!r} is {each.dtype}, it must be one of {allowed}"
                )


def public(name: str, shape: tuple[int, ...], dtype: str = "float32") -> Input:
    """An input that every member knows."""
    return Input(name, shape, dtype, Visibility.PUBLIC)


def secret(name: str, shape: tuple[int, ...], dtype: str = "float32") -> Input:
    """An input of which every member holds a share."""
    return Input(name, shape, dtype, Visibility.SECRET)


def replay_program(model: Model, batch: int, loss_scale: float, contributions: int = 1) -> Program:
    """Return the plain replay as a program: (weights, examples, one-hot targets) -> S * G.

    Weights are public inputs, training inputs are secret. Several contributions of one round are
    replayed side by side, in as many messages as one. The first axis of every secret array is the
    contribution.
    """

    operations = Operations("mpc")

    def replay(weights: Mapping[str, Any], examples: Any, targets: Any) -> Any:
        def difference(logits: Any) -> Any:
            return (operations.softmax(logits, name="loss") - targets) * (loss_scale / batch)

        def logits_of(parameters: Mapping[str, Any]) -> tuple[Any, None]:
            return model.logits(parameters, examples, operations), None

        return pulled_back(model, weights, logits_of, difference)[0]

    side_by_side = jax.vmap(replay, in_axes=(None, 0, 0))

    def function(arrays: dict[str, Any]) -> dict[str, Any]:
        weights = {name: arrays[name] for name in model.layout.names}
        return {GRADIENT: side_by_side(weights, arrays[EXAMPLES], arrays[TARGETS])}

    inputs = (*public_weights(model), *secret_input(model, batch, contributions))
    return Program(f"replay of {model.name}", function, inputs)


def pulled_back(
    model: Model, weights: Mapping[str, Any], logits_of: LogitsOf, difference: Difference
) -> tuple[Any, Any]:
    """Return S * G, flat in canonical order, and the auxiliary values of `logits_of`.

    The loss itself is never computed: the gradient of softmax cross-entropy by the logits is
    softmax minus target. The loss scale S is applied there, where it costs nothing and lifts all
    later values above the rounding of the ring.
    """
    names = model.layout.trainable.names
    logits, pull_back, kept = jax.vjp(
        lambda trained: logits_of({**weights, **trained}),
        {name: weights[name] for name in names},
        has_aux=True,
    )
    (gradient,) = pull_back(difference(logits))
    return jnp.concatenate([gradient[name].reshape(-1) for name in names]), kept


def public_weights(model: Model) -> list[Any]:
    """Return the weights as inputs, not constants, so that one executable serves all rounds."""
    return [public(parameter.name, parameter.shape) for parameter in model.layout]


def secret_input(model: Model, batch: int, contributions: int) -> list[Any]:
    return [
        secret(EXAMPLES, (contributions, batch, *model.input_shape)),
        secret(TARGETS, (contributions, batch, model.classes)),
    ]


def guided_replay_program(
    model: Model, batch: int, loss_scale: float, largest_lift: int, contributions: int = 1
) -> Program:
    """Return the guided replay as a program; its gradient is S * 2^lift * G."""

    def replay(
        weights: Mapping[str, Any],
        examples: Any,
        targets: Any,
        masks: Any,
        lifts: Any,
        ceilings: Any,
    ) -> dict[str, Any]:
        checked: dict[str, Any] = {}
        by_layer = _by_layer(model, batch, masks)

        def logits_of(parameters: Mapping[str, Any]) -> tuple[Any, Any]:
            operations = Recording(Operations("mpc"), by_layer)
            logits = model.logits(parameters, examples, operations)
            return logits, [values.reshape(-1) for values in operations.pre_activations.values()]

        def difference(logits: Any) -> Any:
            lifted, arguments, totals = lifted_difference(logits, targets, ceilings, lifts)
            checked[ARGUMENTS], checked[TOTALS] = arguments.reshape(-1), totals
            return lifted * (loss_scale / batch)

        gradient, pre_activations = pulled_back(model, weights, logits_of, difference)
        return {GRADIENT: gradient, PRE_ACTIVATIONS: jnp.concatenate(pre_activations), **checked}

    side_by_side = jax.vmap(replay, in_axes=(None, 0, 0, 0, 0, 0))
    secrets = (EXAMPLES, TARGETS, MASKS, LIFTS, CEILINGS)

    def function(arrays: dict[str, Any]) -> dict[str, Any]:
        weights = {name: arrays[name] for name in model.layout.names}
        found: dict[str, Any] = side_by_side(weights, *(arrays[name] for name in secrets))
        return found

    inputs = (
        *public_weights(model),
        *secret_input(model, batch, contributions),
        secret(MASKS, (contributions, relu_units(model, batch)), "int32"),
        secret(LIFTS, (contributions, largest_lift + 2), "int32"),
        secret(CEILINGS, (contributions, batch)),
    )
    return Program(f"guided replay of {model.name}", function, inputs)


def lifted_difference(logits: Any, targets: Any, ceilings: Any, lifts: Any) -> tuple[Any, Any, Any]:
    """Return (softmax - target) * 2^lift, the arguments of the exponentials, and their totals.

    With c the ceiling and k the lift, computes exp(x - c) for the label's logit, and exp(x - c) *
    2^k for the others. Both are at most one. The label's difference is minus the sum of the others.
    The last lift means that there is nothing to learn: all differences are below 2^-k for the
    largest k, as the arguments then show.
    """
    powers = np.minimum(np.arange(lifts.shape[-1]), lifts.shape[-1] - 2)
    table = np.stack([powers * math.log(2), 2.0**-powers], axis=1).astype(np.float32)
    raised, lowered = jnp.split(lifts.astype(jnp.float32) @ table, 2)
    others = 1.0 - targets
    arguments = logits - ceilings[:, None] + others * raised
    exponentials = exponential(arguments)
    of_label = exponentials * targets
    of_others = exponentials - of_label
    totals = jnp.sum(of_label, 1) + jnp.sum(of_others, 1) * lowered
    lifted = of_others * reciprocal(totals, logits.shape[-1])[:, None]
    return lifted - targets * jnp.sum(lifted, 1, keepdims=True), arguments, totals


def _by_layer(model: Model, batch: int, masks: Any) -> dict[str, Any]:
    shapes = relu_shapes(model, batch)
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
    parts = jnp.split(masks, ends[:-1])
    return {
        name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }
