"""The replay along a client's advice, and what is needed to check that advice.

Masks replace the comparisons of ReLUs, ceilings the search for the largest logit. The lift scales
the loss by a power of two: with it the probabilities of all classes but the label's are computed
for themselves, relative to each other, so that they do not vanish when the label's is nearly one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from opfl_chain.models.model import Model
from opfl_chain.models.relus import relu_shapes, relu_units
from opfl_chain.mpc.operations import MpcOperations, exponential, reciprocal
from opfl_chain.mpc.program import Program, secret
from opfl_chain.mpc.replay import public_weights, pulled_back, secret_input
from opfl_chain.mpc.replay_names import (
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


class MaskedOperations(MpcOperations):
    """ReLUs by given masks. Keeps what went into them."""

    def __init__(self, masks: Mapping[str, Any]) -> None:
        self.pre_activations: list[Any] = []
        self._masks = masks

    def relu(self, values: Any, *, name: str) -> Any:
        self.pre_activations.append(values)
        return values * self._masks[name]


def guided_replay_program(
    model: Model, batch: int, loss_scale: float, largest_lift: int, contributions: int = 1
) -> Program:
    """Return the guided replay as a program, whose gradient is S * 2^lift * G."""

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
            operations = MaskedOperations(by_layer)
            logits = model.logits(parameters, examples, operations)
            return logits, [values.reshape(-1) for values in operations.pre_activations]

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

    With c the ceiling and k the lift, exp(x - c) is taken of the label's logit, and exp(x - c) *
    2^k of the others. Both are at most one; and the label's difference is minus the others' sum.
    The last of the lifts says that there is nothing to learn: that all of it is below 2^-k for the
    largest k, which is what the arguments then show.
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
