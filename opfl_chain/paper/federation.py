"""A small federation in which one client cheats and nobody is excluded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from opfl_chain.lab.calibration.steps import HonestStep
from opfl_chain.learning.data.examples import Dataset
from opfl_chain.learning.data.partition import ClientData
from opfl_chain.learning.local_step import Evaluation, LocalStep, evaluate
from opfl_chain.learning.model import Model
from opfl_chain.learning.optimizers import ModelOptimizer, OptimizerState
from opfl_chain.learning.proved_client import ProvedStep
from opfl_chain.protocol.policy import Policy

Array = NDArray[np.float32]
CLIENTS = 5
LOST = 1e3
"""Weights beyond this have diverged, and soon overflow."""
Submission = Callable[[HonestStep], Array]
"""Maps an honest step to the submission of the cheat, which is client 0."""


@dataclass(frozen=True, eq=False)
class Start:
    """The pretrained model that the rounds start from."""

    weights: Array
    state: OptimizerState[Array]


@dataclass(frozen=True, eq=False)
class FederationResult:
    weights: Array
    rounds: int
    """Rounds until the end, or until the model diverged."""
    evaluation: Evaluation
    cheats: Sequence[HonestStep]
    """The cheat's steps, with their honest gradients."""
    submitted: Sequence[Array]


class Federation:
    """Clients with shares of a data set that train from one start."""

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

    def run(
        self,
        submission: Submission | None,
        keep: bool = False,
        prover: ProvedStep | None = None,
    ) -> FederationResult:
        """Train; without a submission all clients are honest. `keep` stores steps for replays.

        A `prover` runs the steps of client 0, along their proofs.
        """
        optimizer = ModelOptimizer.of_policy(self._policy)
        state, weights = self._start.state, self._start.weights
        cheats, submitted = [], []
        rounds = 0
        for t in range(self.rounds):
            if np.abs(weights).max() > LOST:
                break
            steps = [
                self._step(t, weights, client, keep and client == 0) for client in range(CLIENTS)
            ]
            if prover is not None:
                steps[0] = self._along_proof(prover, steps[0])
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
        return FederationResult(weights, rounds, self.evaluated(weights), cheats, submitted)

    def _along_proof(self, prover: ProvedStep, step: HonestStep) -> HonestStep:
        weights = self.model.layout.unflatten(step.weights)
        proved = prover.run(weights, step.examples, step.labels)
        return replace(step, gradient=proved.result.gradient)

    def evaluated(self, weights: Array) -> Evaluation:
        parameters = self.model.layout.unflatten(weights)
        return evaluate(self.model, parameters, self._dataset.test, self._policy.data)

    def loss_gradient(self, weights: Array, examples: int) -> Array:
        """Return the mean loss gradient of the cheat's own examples."""
        gradients = [self._step(t, weights, 0, False).gradient for t in range(examples)]
        mean: Array = np.mean(gradients, axis=0, dtype=np.float64).astype(np.float32)
        return mean

    def _step(self, t: int, weights: Array, client: int, keep: bool) -> HonestStep:
        images, labels = self._clients[client].batch(t)
        parameters = self.model.layout.unflatten(weights)
        result = self._local.run(parameters, images, labels, pre_activations=keep)
        found = result.gradient, result.logits, result.relu_inputs
        return HonestStep(t, weights, images, labels, *found)
