"""The local step of a client that proves it.

The statement's own forward pass, in exact integers, decides on which side of a ReLU each value is,
and the step in floating point follows these sides. It takes the errors of the logits from there as
well: of a step that is almost certain they are differences of nearly equal numbers, which floating
point would blur. So both take the same path, and differ by the rounding of products alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from opfl_chain.learning.local_step import LocalStep, StepResult
from opfl_chain.learning.model import relu_shapes
from opfl_chain.learning.proved_step import logit_errors, mask_words, statement_of
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.closing import Statement, Tolerance
from opfl_chain.protocol.proof.evaluation import Evaluation, as_integers, set_inputs

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class ProvedResult:
    """A step in floating point, its statement, and the advice on it."""

    result: StepResult
    statement: Statement
    advised: Evaluation
    """The values of all words of the step itself."""


class ProvedStep:
    """Runs steps of one policy. Keeps no state between steps."""

    def __init__(
        self,
        policy: Policy,
        tolerance: Tolerance,
        *,
        threads: int = 1,
        device: torch.device | None = None,
    ) -> None:
        self._policy = policy
        self._tolerance = tolerance
        self._step = LocalStep.of_policy(policy, device, threads=threads)
        self._shapes = relu_shapes(self._step.model, policy.data.batch_size)

    def state(self, weights: Weights) -> Statement:
        """Return the statement of a step at these weights."""
        return statement_of(self._policy, self._tolerance, weights)

    def run(
        self,
        weights: Weights,
        examples: NDArray[np.float32],
        labels: NDArray[np.int64],
        run: Callable[..., StepResult] | None = None,
    ) -> ProvedResult:
        """Advise on the step, and run it along the advice; `run` replaces the local step."""
        statement = self.state(weights)
        advised = Evaluation()
        set_inputs(statement, advised, as_integers(_unsigned(self._policy, examples, labels)))
        for group in statement.stage(0):
            advised.set(group.wire, group.fill(advised))
        masks = {
            name: mask_words(statement, advised, name).reshape(shape)
            for name, shape in self._shapes.items()
        }
        taken = run or self._step.run
        errors = logit_errors(statement, advised) / self._policy.data.batch_size
        result = taken(weights, examples, labels, pre_activations=True, masks=masks, errors=errors)
        return ProvedResult(result, statement, advised)


def _unsigned(
    policy: Policy, examples: NDArray[np.float32], labels: NDArray[np.int64]
) -> NDArray[np.uint64]:
    return policy.input_format.encode(examples, labels).view(np.uint64)
