"""Honest steps of a whole training run, kept for replays."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opfl_chain.models.initialisation import initial_parameters
from opfl_chain.protocol.policy import Policy
from opfl_chain.training.client_data import ClientData
from opfl_chain.training.examples import Examples
from opfl_chain.training.local_step import LocalStep
from opfl_chain.training.optimizers import optimizer_of

Array = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class HonestStep:
    """What a client had and computed in one round. All arrays are as the local step has them."""

    t: int
    weights: Array
    """Flat, in canonical order."""
    examples: Array
    labels: NDArray[np.int64]
    gradient: Array
    logits: Array
    pre_activations: Array
    """Flat, in the order of the model's ReLUs."""


def honest_run(
    policy: Policy, examples: Examples, steps: int, kept: Collection[int], client: int = 0
) -> Iterator[tuple[int, Array, HonestStep | None]]:
    """Train alone for so many steps. Yields each step's number, its weights and, if kept, it."""
    local = LocalStep.of_policy(policy)
    layout = local.model.layout
    weights = layout.flatten(initial_parameters(layout, policy.seeds.model))
    optimizer = optimizer_of(policy.optimizer)
    state = optimizer.start(weights)
    data = ClientData(policy, examples, client)
    for t in range(steps):
        images, labels = data.batch(t)
        keep = t in kept
        result = local.run(layout.unflatten(weights), images, labels, pre_activations=keep)
        values = [array.ravel() for array in result.pre_activations.values()]
        yield (
            t,
            weights,
            HonestStep(
                t, weights, images, labels, result.gradient, result.logits, np.concatenate(values)
            )
            if keep
            else None,
        )
        state, weights = optimizer.update(state, weights, result.gradient)


def spread_steps(first: int, spread: int, steps: int) -> list[int]:
    """Return the first steps of a run, and as many others spread evenly over the rest of it."""
    rest = np.linspace(first, steps - 1, spread + 1, dtype=np.int64)[1:]
    return sorted({*range(first), *(int(t) for t in rest)})
