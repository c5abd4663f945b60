"""Rounds of a small federation in which one client cheats, and nobody is excluded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opfl_chain.calibration.steps import HonestStep
from opfl_chain.models.model import Model
from opfl_chain.protocol.policy import Policy
from opfl_chain.training.client_data import ClientData
from opfl_chain.training.evaluate import Evaluation, evaluate
from opfl_chain.training.examples import Dataset
from opfl_chain.training.local_step import LocalStep
from opfl_chain.training.optimizer_state import OptimizerState
from opfl_chain.training.optimizers import optimizer_of

Array = NDArray[np.float32]
CLIENTS = 5
LOST = 1e3
"""Weights beyond it belong to no model any more, and soon leave the range of numbers."""
Submission = Callable[[HonestStep], Array]
"""What the cheat, who is client 0, submits instead of its honest gradient."""


@dataclass(frozen=True, eq=False)
class Start:
    """Where the rounds begin: a model that was trained for a while."""

    weights: Array
    state: OptimizerState[Array]


@dataclass(frozen=True, eq=False)
class Outcome:
    weights: Array
    rounds: int
    """Until the end, or until nothing was left of the model."""
    evaluation: Evaluation
    cheats: Sequence[HonestStep]
    """The cheat's steps, with their honest gradients."""
    submitted: Sequence[Array]


class Federation:
    """Clients with shares of a data set, from one start, for so many rounds."""

    def __init__(self, policy: Policy, dataset: Dataset, start: Start, rounds: int) -> None:
        self.rounds = rounds
        self._policy, self._dataset, self._start = policy, dataset, start
        self._local = LocalStep.of_policy(policy)
        self._clients = [
            ClientData(policy, dataset.train.take(slice(client, None, CLIENTS)), client)
            for client in range(CLIENTS)
        ]

    @property
    def model(self) -> Model:
        return self._local.model

    def run(self, submission: Submission | None, keep: bool = False) -> Outcome:
        """Train; without a submission all clients are honest. `keep` is for replays."""
        optimizer = optimizer_of(self._policy.optimizer)
        state, weights = self._start.state, self._start.weights
        cheats, submitted = [], []
        rounds = 0
        for t in range(self.rounds):
            if np.abs(weights).max() > LOST:
                break
            steps = [
                self._step(t, weights, client, keep and client == 0) for client in range(CLIENTS)
            ]
            gradients = [step.gradient for step in steps]
            if submission is not None:
                with np.errstate(over="ignore"):
                    gradients[0] = submission(steps[0])
            if keep:
                cheats.append(steps[0])
                submitted.append(gradients[0])
            mean = np.mean(gradients, axis=0, dtype=np.float64).astype(np.float32)
            state, weights = optimizer.update(state, weights, mean)
            rounds += 1
        return Outcome(weights, rounds, self.evaluated(weights), cheats, submitted)

    def evaluated(self, weights: Array) -> Evaluation:
        parameters = self.model.layout.unflatten(weights)
        return evaluate(self.model, parameters, self._dataset.test, self._policy.data)

    def loss_gradient(self, weights: Array, examples: int) -> Array:
        """Of the cheat's own examples."""
        gradients = [self._step(t, weights, 0, False).gradient for t in range(examples)]
        mean: Array = np.mean(gradients, axis=0, dtype=np.float64).astype(np.float32)
        return mean

    def _step(self, t: int, weights: Array, client: int, keep: bool) -> HonestStep:
        images, labels = self._clients[client].batch(t)
        parameters = self.model.layout.unflatten(weights)
        result = self._local.run(parameters, images, labels, pre_activations=keep)
        values = [array.ravel() for array in result.pre_activations.values()]
        told = np.concatenate(values) if keep else np.zeros(0, np.float32)
        return HonestStep(t, weights, images, labels, result.gradient, result.logits, told)
