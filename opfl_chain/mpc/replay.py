"""The replay: the gradient of a training step, on a secret input and public weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from opfl_chain.models.model import Model
from opfl_chain.mpc.operations import MpcOperations, softmax
from opfl_chain.mpc.program import Program, public, secret
from opfl_chain.mpc.replay_names import EXAMPLES, GRADIENT, TARGETS

LogitsOf = Callable[[Mapping[str, Any]], tuple[Any, Any]]
"""From parameters to logits, and whatever else is wanted."""

Difference = Callable[[Any], Any]
"""From logits to what is pulled back: softmax minus target, by the loss scale."""


def replay_program(model: Model, batch: int, loss_scale: float, contributions: int = 1) -> Program:
    """Return the plain replay as a program: (weights, examples, one-hot targets) -> S * G.

    Weights are public inputs, training inputs are secret. Several contributions of one round are
    replayed side by side, in as many messages as one. All arrays of secrets have an axis for the
    contributions in front.
    """

    def replay(weights: Mapping[str, Any], examples: Any, targets: Any) -> Any:
        def difference(logits: Any) -> Any:
            return (softmax(logits) - targets) * (loss_scale / batch)

        def logits_of(parameters: Mapping[str, Any]) -> tuple[Any, None]:
            return model.logits(parameters, examples, MpcOperations()), None

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
    """Return S * G, flat in canonical order, and what `logits_of` returned beside the logits.

    The loss itself is never computed: the gradient of softmax cross-entropy by the logits is
    softmax minus target. The loss scale S enters there, where it costs nothing and lifts all that
    follows above the rounding of the ring.
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
    """Weights as inputs, never as constants: an executable serves all rounds."""
    return [public(parameter.name, parameter.shape) for parameter in model.layout]


def secret_input(model: Model, batch: int, contributions: int) -> list[Any]:
    return [
        secret(EXAMPLES, (contributions, batch, *model.input_shape)),
        secret(TARGETS, (contributions, batch, model.classes)),
    ]
