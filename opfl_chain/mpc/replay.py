"""The replay: the gradient of a training step, on a secret input and public weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from opfl_chain.models.model import Model
from opfl_chain.mpc.operations import MpcOperations, softmax
from opfl_chain.mpc.program import Program, public, secret

Replay = Callable[[Mapping[str, Any], Any, Any], Any]

EXAMPLES, TARGETS, GRADIENT = "examples", "targets", "gradient"


def replay_of(model: Model, loss_scale: float) -> Replay:
    """Return (parameters, examples, one-hot targets) -> S * G, flat in canonical order.

    The loss itself is never computed: the gradient of softmax cross-entropy by the logits is
    softmax minus target. The loss scale S enters there, where it costs nothing and lifts all that
    follows above the rounding of the ring.
    """

    def replay(parameters: Mapping[str, Any], examples: Any, targets: Any) -> Any:
        def logits_of(trained: Mapping[str, Any]) -> Any:
            return model.logits({**parameters, **trained}, examples, MpcOperations())

        trained = {name: parameters[name] for name in model.layout.trainable.names}
        logits, pull_back = jax.vjp(logits_of, trained)
        scale = loss_scale / examples.shape[0]
        (gradient,) = pull_back((softmax(logits) - targets) * scale)
        return jnp.concatenate(
            [gradient[name].reshape(-1) for name in model.layout.trainable.names]
        )

    return replay


def replay_program(model: Model, batch: int, loss_scale: float, contributions: int = 1) -> Program:
    """Return the replay as a program: weights are public inputs, training inputs are secret.

    Several contributions of one round are replayed side by side, in as many messages as one. All
    arrays of secrets have an axis for the contributions in front.
    """
    replay = jax.vmap(replay_of(model, loss_scale), in_axes=(None, 0, 0))

    def function(arrays: dict[str, Any]) -> dict[str, Any]:
        weights = {name: arrays[name] for name in model.layout.names}
        return {GRADIENT: replay(weights, arrays[EXAMPLES], arrays[TARGETS])}

    weights = [public(parameter.name, parameter.shape) for parameter in model.layout]
    examples = secret(EXAMPLES, (contributions, batch, *model.input_shape))
    targets = secret(TARGETS, (contributions, batch, model.classes))
    return Program(f"replay of {model.name}", function, (*weights, examples, targets))
