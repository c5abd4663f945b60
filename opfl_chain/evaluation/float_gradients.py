"""Gradients of a model's JAX form in floating point, with any operations: the local step's twin.

As in the local step, weights and examples are those that ring words hold, softmax minus target is
formed in float64, and it is zero where there is nothing to learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax.experimental import enable_x64
from numpy.typing import NDArray

from opfl_chain.calibration.steps import HonestStep
from opfl_chain.models.float_operations import FloatOperations
from opfl_chain.models.model import Model
from opfl_chain.models.operations import Operations
from opfl_chain.mpc.replay import pulled_back
from opfl_chain.protocol.advice import lift_of
from opfl_chain.protocol.fixed_point import FixedPoint
from opfl_chain.training.local_step import DEFAULT_FRACTION_BITS, loss_gradient


@dataclass(frozen=True, eq=False)
class Computed:
    """What an execution of a step gives that matters to an audit."""

    gradient: NDArray[np.float32]
    logits: NDArray[np.float32]
    pre_activations: NDArray[np.float32]


class Recording:
    """Operations that keep what goes into ReLUs, and take masks for them if there are any."""

    def __init__(self, operations: Operations, masks: Mapping[str, Any] | None = None) -> None:
        self.pre_activations: list[Any] = []
        self._operations = operations
        self._masks = masks

    def relu(self, values: Any, *, name: str) -> Any:
        self.pre_activations.append(values.reshape(-1))
        if self._masks is not None:
            return values * self._masks[name]
        return self._operations.relu(values, name=name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operations, name)


class FloatStep:
    """Steps of one model, compiled once for each kind of operations."""

    def __init__(
        self,
        model: Model,
        operations: Operations | None = None,
        *,
        double: bool = False,
        largest_lift: int | None = None,
    ) -> None:
        self.model = model
        self._operations = operations or FloatOperations()
        self._double = double
        self._largest_lift = largest_lift
        self._ring = FixedPoint(DEFAULT_FRACTION_BITS)
        self._forward = jax.jit(self._logits)
        self._backward = jax.jit(self._gradient)

    def run(self, step: HonestStep, masks: Mapping[str, Any] | None = None) -> Computed:
        dtype = np.float64 if self._double else np.float32
        held = self._ring.nearest(step.weights).astype(dtype)
        weights = self.model.layout.unflatten(held)
        examples = self._ring.nearest(step.examples).astype(dtype)
        given = {name: np.asarray(mask, dtype) for name, mask in (masks or {}).items()} or None
        with enable_x64(self._double):
            logits, values = self._forward(weights, examples, given)
            pulled = self._difference(np.asarray(logits, np.float64), step.labels).astype(dtype)
            gradient = self._backward(weights, examples, given, pulled)
        return Computed(*(np.asarray(each, np.float32) for each in (gradient, logits, values)))

    def _difference(
        self, logits: NDArray[np.float64], labels: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Softmax minus target, or zero where lifts do not reach."""
        largest = self._largest_lift
        if largest is not None and lift_of(logits, labels, largest) > largest:
            return np.zeros_like(logits)
        return loss_gradient(torch.tensor(logits), torch.tensor(labels)).numpy()

    def _logits(self, weights: Any, examples: Any, masks: Any) -> tuple[Any, Any]:
        operations = Recording(self._operations, masks)
        logits = self.model.logits(weights, examples, operations)
        return logits, jnp.concatenate(operations.pre_activations)

    def _gradient(self, weights: Any, examples: Any, masks: Any, pulled: Any) -> Any:
        def logits_of(parameters: Mapping[str, Any]) -> tuple[Any, Any]:
            return self._logits(parameters, examples, masks)

        return pulled_back(self.model, weights, logits_of, lambda logits: pulled)[0]
