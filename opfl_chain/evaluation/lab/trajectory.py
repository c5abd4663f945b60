"""A training run once more, with all that attackers know of each step and records do not keep.

Training gives the same bytes every time, so records of replays fit to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opfl_chain.models.initialisation import initial_parameters
from opfl_chain.protocol.policy import Policy
from opfl_chain.training.client_data import ClientData
from opfl_chain.training.examples import Examples
from opfl_chain.training.local_step import LocalStep, StepResult
from opfl_chain.training.optimizer_state import OptimizerState
from opfl_chain.training.optimizers import optimizer_of

Array = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TrainedStep:
    """One round of a client that trains alone."""

    t: int
    weights: Array
    state: OptimizerState[Array]
    examples: Array
    labels: NDArray[np.int64]
    result: StepResult


def trained_steps(policy: Policy, examples: Examples, steps: int) -> Iterator[TrainedStep]:
    """The run that `calibration.steps.honest_run` keeps steps of."""
    local = LocalStep.of_policy(policy)
    layout = local.model.layout
    weights = layout.flatten(initial_parameters(layout, policy.seeds.model))
    optimizer = optimizer_of(policy.optimizer)
    state = optimizer.start(weights)
    data = ClientData(policy, examples, 0)
    for t in range(steps):
        images, labels = data.batch(t)
        result = local.run(layout.unflatten(weights), images, labels)
        yield TrainedStep(t, weights, state, images, labels, result)
        state, weights = optimizer.update(state, weights, result.gradient)
