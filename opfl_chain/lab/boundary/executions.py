"""Executions of a step in floating point, also with the low-precision products of GPUs.

TF32 and bf16 units round the factors of every product to 10 and 7 bits behind the leading one, in
both the forward and the backward pass. Everything else stays float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax.experimental import enable_x64
from numpy.typing import NDArray

from opfl_chain.lab.calibration.steps import HonestStep
from opfl_chain.learning.local_step import DEFAULT_FRACTION_BITS, loss_gradient
from opfl_chain.learning.model import Model
from opfl_chain.learning.operations.table import OPERATIONS, Operations, Recording
from opfl_chain.mpc.replay.programs import pulled_back
from opfl_chain.protocol.advice import lift_of
from opfl_chain.protocol.ring import FixedPoint

TF32_BITS = 10
BF16_BITS = 7
_FLOAT32_BITS = 23

Product = Callable[[Any, Any], Any]


def rounded(values: Any, bits: int) -> Any:
    """Round to the nearest float32 with `bits` bits behind the leading one, ties to even."""
    dropped = _FLOAT32_BITS - bits
    words = jax.lax.bitcast_convert_type(values, jnp.uint32)
    odd = (words >> dropped) & 1
    words = (words + ((1 << (dropped - 1)) - 1) + odd) >> dropped << dropped
    return jax.lax.bitcast_convert_type(words, jnp.float32)


def of_few_bits(product: Product, bits: int) -> Product:
    """Return a product that rounds its factors, in its derivatives too."""

    @jax.custom_vjp
    def narrow(left: Any, right: Any) -> Any:
        return product(rounded(left, bits), rounded(right, bits))

    def forward(left: Any, right: Any) -> tuple[Any, Any]:
        factors = rounded(left, bits), rounded(right, bits)
        return product(*factors), factors

    def backward(factors: Any, pulled: Any) -> Any:
        return jax.vjp(product, *factors)[1](rounded(pulled, bits))

    narrow.defvjp(forward, backward)
    return narrow


def narrow_operations(bits: int) -> Operations:
    """Return operations whose convolutions and dense layers have low-precision products."""

    def narrow(operation: str) -> Callable[..., Any]:
        exact = OPERATIONS[operation].jax

        def compute(values: Any, weight: Any, bias: Any, **options: Any) -> Any:
            def product(left: Any, right: Any) -> Any:
                return exact(left, right, jnp.zeros_like(bias), **options)

            return bias + of_few_bits(product, bits)(values, weight)

        return compute

    return Operations("jax", convolution=narrow("convolution"), dense=narrow("dense"))


@dataclass(frozen=True, eq=False)
class Computed:
    """The results of an execution that matter to an audit."""

    gradient: NDArray[np.float32]
    logits: NDArray[np.float32]
    pre_activations: NDArray[np.float32]


class FloatStep:
    """Executes steps of one model, compiled for one kind of operations."""

    def __init__(
        self,
        model: Model,
        operations: Operations | None = None,
        *,
        double: bool = False,
        largest_lift: int | None = None,
    ) -> None:
        self.model = model
        self._operations = operations or Operations("jax")
        self._double = double
        self._largest_lift = largest_lift
        self._ring = FixedPoint(DEFAULT_FRACTION_BITS)
        self._forward = jax.jit(self._logits)
        self._backward = jax.jit(self._gradient)

    def run(
        self,
        step: HonestStep,
        masks: Mapping[str, Any] | None = None,
        errors: NDArray[np.float64] | None = None,
    ) -> Computed:
        """Run a step, with these masks and errors of the logits if they are given."""
        dtype = np.float64 if self._double else np.float32
        held = self._ring.nearest(step.weights).astype(dtype)
        weights = self.model.layout.unflatten(held)
        examples = self._ring.nearest(step.examples).astype(dtype)
        given = {name: np.asarray(mask, dtype) for name, mask in (masks or {}).items()} or None
        with enable_x64(self._double):
            logits, values = self._forward(weights, examples, given)
            pulled = errors
            if pulled is None:
                pulled = self._difference(np.asarray(logits, np.float64), step.labels)
            pulled = pulled.astype(dtype)
            gradient = self._backward(weights, examples, given, pulled)
        return Computed(*(np.asarray(each, np.float32) for each in (gradient, logits, values)))

    def _difference(
        self, logits: NDArray[np.float64], labels: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return softmax minus target, or zero beyond the largest lift."""
        largest = self._largest_lift
        if largest is not None and lift_of(logits, labels, largest) > largest:
            return np.zeros_like(logits)
        return loss_gradient(torch.tensor(logits), torch.tensor(labels)).numpy()

    def _logits(self, weights: Any, examples: Any, masks: Any) -> tuple[Any, Any]:
        operations = Recording(self._operations, masks)
        logits = self.model.logits(weights, examples, operations)
        values = [each.reshape(-1) for each in operations.pre_activations.values()]
        return logits, jnp.concatenate(values)

    def _gradient(self, weights: Any, examples: Any, masks: Any, pulled: Any) -> Any:
        def logits_of(parameters: Mapping[str, Any]) -> tuple[Any, Any]:
            return self._logits(parameters, examples, masks)

        return pulled_back(self.model, weights, logits_of, lambda logits: pulled)[0]
