"""The update of the weights by an aggregated gradient: the same bytes on every machine.

Numbers are float32, and every operation is one of the element-wise +, -, *, / and square root that
IEEE 754 rounds correctly, in the order written here. So numpy, and torch on any device and with any
number of threads, agree to the last bit. What of torch would break that does not occur here, and is
what `torch.optim` is made of: `add` with a factor, `addcmul`, `addcdiv` and `lerp` round once where
two operations round twice; a division by a number is a product with its reciprocal on CUDA; and
`sqrt` of float32 on the CPU is off by one unit in one element of seven.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from opfl_chain.protocol.policy import AdamW as AdamWRules
from opfl_chain.protocol.policy import Sgd as SgdRules
from opfl_chain.training.errors import DenormalsFlushed, UpdateInvalid
from opfl_chain.training.optimizer_state import OptimizerState

Elements = TypeVar("Elements")
Update = tuple[OptimizerState[Elements], Elements]


class Optimizer(Protocol):
    """Pure functions over flat float32 vectors, numpy arrays or torch tensors."""

    def start(self, weights: Elements) -> OptimizerState[Elements]:
        """The state before the first update of these weights."""

    def update(
        self, state: OptimizerState[Elements], weights: Elements, gradient: Elements
    ) -> Update[Elements]:
        """The next state and the next weights; what was passed is left as it is."""


@dataclass(frozen=True)
class Sgd:
    """g += decay * w; v = momentum * v + g; w -= rate * v. Without momentum v is g."""

    rules: SgdRules

    def start(self, weights: Any) -> OptimizerState[Any]:
        return OptimizerState(0, (_zeros(weights),) if self.rules.momentum else ())

    @np.errstate(all="ignore")  # what it hides is refused at the end
    def update(self, state: OptimizerState[Any], weights: Any, gradient: Any) -> Update[Any]:
        _check(state, weights, gradient, averages=1 if self.rules.momentum else 0)
        step = gradient
        if self.rules.weight_decay:
            step = weights * _float32(self.rules.weight_decay) + step
        if self.rules.momentum:
            step = state.averages[0] * _float32(self.rules.momentum) + step
        updated = weights - step * _float32(self.rules.learning_rate)
        averages = (step,) if self.rules.momentum else ()
        return _finite(OptimizerState(state.step + 1, averages), updated)


@dataclass(frozen=True)
class AdamW:
    """Adam with decoupled weight decay, as published, with both averages corrected for their start.

    What does not depend on an element is computed in float64 and rounded to float32 once.
    """

    rules: AdamWRules

    def start(self, weights: Any) -> OptimizerState[Any]:
        return OptimizerState(0, (_zeros(weights), _zeros(weights)))

    @np.errstate(all="ignore")  # what it hides is refused at the end
    def update(self, state: OptimizerState[Any], weights: Any, gradient: Any) -> Update[Any]:
        _check(state, weights, gradient, averages=2)
        rules, step = self.rules, state.step + 1
        first, second = state.averages
        first = first * _float32(rules.beta1) + gradient * _float32(1 - rules.beta1)
        second = second * _float32(rules.beta2) + (gradient * gradient) * _float32(1 - rules.beta2)
        rate = rules.learning_rate / (1 - _power(rules.beta1, step))
        correction = 1 / math.sqrt(1 - _power(rules.beta2, step))
        size = _root(second) * _float32(correction) + _float32(rules.epsilon)
        kept = weights * _float32(1 - rules.learning_rate * rules.weight_decay)
        updated = kept - (first / size) * _float32(rate)
        return _finite(OptimizerState(step, (first, second)), updated)


def optimizer_of(rules: SgdRules | AdamWRules) -> Optimizer:
    """The optimizer that a policy names."""
    return Sgd(rules) if isinstance(rules, SgdRules) else AdamW(rules)


def _float32(value: float) -> float:
    # A Python float of float32 precision: numpy and torch both take it as the float32 it is.
    return float(np.float32(value))


def _power(base: float, exponent: int) -> float:
    # By multiplication only: pow() of the C library is not rounded the same everywhere.
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


def _zeros(like: Any) -> Any:
    return np.zeros_like(like) if isinstance(like, np.ndarray) else like.new_zeros(like.shape)


def _root(values: Any) -> Any:
    # Of float64 in torch: rounded to float32, a root that is nearly right is the right one.
    return np.sqrt(values) if isinstance(values, np.ndarray) else values.double().sqrt().float()


def _finite(state: OptimizerState[Any], weights: Any) -> Update[Any]:
    for values in (weights, *state.averages):
        # 0 * x is 0 unless x is nan or infinite, and then so is the sum.
        if float((values * 0.0).sum()) != 0:
            raise UpdateInvalid(
                "the update leaves the range of float32: the gradient is not finite, or the"
                " learning rate of the policy is too high"
            )
    return state, weights


def _check(state: OptimizerState[Any], weights: Any, gradient: Any, *, averages: int) -> None:
    if np.float32(2.0**-126) * np.float32(0.5) == 0:
        raise DenormalsFlushed
    if len(state.averages) != averages:
        raise UpdateInvalid(
            f"the state has {len(state.averages)} averages, this optimizer keeps {averages}"
        )
    arrays = {"weights": weights, "gradient": gradient}
    arrays |= {f"average {place}": average for place, average in enumerate(state.averages)}
    for name, array in arrays.items():
        if array.ndim != 1 or tuple(array.shape) != tuple(weights.shape):
            raise UpdateInvalid(
                f"{name} has shape {tuple(array.shape)}, the weights {tuple(weights.shape)}:"
                " all must be flat and of one length"
            )
        if str(array.dtype).removeprefix("torch.") != "float32":
            raise UpdateInvalid(f"{name} has dtype {array.dtype}, it must be float32")
