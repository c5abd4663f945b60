"""Optimizers by the name that a policy gives, and the canonical bytes of their state."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from opfl_chain.learning import errors
from opfl_chain.learning.layout import ParameterLayout
from opfl_chain.learning.registry import made_with_options, model_of
from opfl_chain.protocol.policy import AdamW as AdamWRules
from opfl_chain.protocol.policy import OptimizerRules, Policy
from opfl_chain.protocol.policy import Sgd as SgdRules
from opfl_chain.system.plugins import Registry

Weights = NDArray[np.float32]

Elements = TypeVar("Elements")
"""A numpy array or a torch tensor: flat, float32."""

_HEADER = struct.Struct("<4sBBQQ")
_MAGIC, _VERSION = b"OPFO", 1


@dataclass(frozen=True)
class OptimizerState(Generic[Elements]):
    """The number of updates, and the running averages in the optimizer's order."""

    step: int
    averages: tuple[Elements, ...]


def state_to_bytes(state: OptimizerState[NDArray[np.float32]]) -> bytes:
    """Encode `OPFO`, version, number of averages, step, length, then little-endian float32."""
    length = state.averages[0].size if state.averages else 0
    header = _HEADER.pack(_MAGIC, _VERSION, len(state.averages), state.step, length)
    return header + b"".join(average.astype("<f4").tobytes() for average in state.averages)


def state_from_bytes(data: bytes) -> OptimizerState[NDArray[np.float32]]:
    """Decode the bytes of `state_to_bytes`; raise on any others."""
    if len(data) < _HEADER.size:
        raise errors.StateInvalid(
            f"a state has at least {_HEADER.size} bytes, these are {len(data)}"
        )
    magic, version, count, step, length = _HEADER.unpack_from(data)
    if (magic, version) != (_MAGIC, _VERSION):
        raise errors.StateInvalid(
            f"the state starts with {magic!r} and version {version},"
            f" this package reads {_MAGIC!r} and version {_VERSION}"
        )
    if len(data) != _HEADER.size + 4 * count * length:
        raise errors.StateInvalid(
            f"a state of {count} averages of {length:,} numbers has"
            f" {_HEADER.size + 4 * count * length:,} bytes, these are {len(data):,}"
        )
    values = np.frombuffer(data, "<f4", offset=_HEADER.size).astype(np.float32)
    return OptimizerState(step, tuple(values.reshape(count, length).copy()) if count else ())


Update = tuple[OptimizerState[Elements], Elements]


class Optimizer(Protocol):
    """Pure functions over flat float32 vectors, numpy arrays or torch tensors.

    Keyword parameters of what makes an optimizer are the options of policies. Everybody must get
    the same bytes: use operations that IEEE 754 rounds correctly, in a fixed order.
    """

    def start(self, weights: Elements) -> OptimizerState[Elements]:
        """Return the state before the first update of these weights."""

    def update(
        self, state: OptimizerState[Elements], weights: Elements, gradient: Elements
    ) -> Update[Elements]:
        """Return the next state and the next weights; the arguments are not modified."""


class Sgd:
    """g += decay * w; v = momentum * v + g; w -= rate * v. Without momentum v is g."""

    def __init__(
        self, learning_rate: float, momentum: float = 0.0, weight_decay: float = 0.0
    ) -> None:
        self.rules = SgdRules(
            name="sgd", learning_rate=learning_rate, momentum=momentum, weight_decay=weight_decay
        )

    def start(self, weights: Any) -> OptimizerState[Any]:
        return OptimizerState(0, (_zeros(weights),) if self.rules.momentum else ())

    @np.errstate(all="ignore")  # overflow and nan are refused at the end
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


class AdamW:
    """Adam with decoupled weight decay, as published, with bias correction of both averages.

    Values that do not depend on an element are computed in float64 and rounded to float32 once.
    """

    def __init__(
        self,
        learning_rate: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        self.rules = AdamWRules(
            name="adamw",
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            weight_decay=weight_decay,
        )

    def start(self, weights: Any) -> OptimizerState[Any]:
        return OptimizerState(0, (_zeros(weights), _zeros(weights)))

    @np.errstate(all="ignore")  # overflow and nan are refused at the end
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


OPTIMIZERS: Registry[Callable[..., Optimizer]] = Registry(
    "optimizer",
    "opfl_chain.optimizers",
    {"sgd": Sgd, "adamw": AdamW},
    errors.UnknownOptimizer,
    callable,
)
"""Functions that make an optimizer; their keyword parameters are the options of policies."""


def optimizer_of(rules: OptimizerRules) -> Optimizer:
    """Return the optimizer that a policy names."""
    fields = rules.model_dump()
    name, more = fields.pop("name"), fields.pop("options", {})
    return made_with_options(f"optimizer {name}", OPTIMIZERS[name], {**fields, **more})


@dataclass(frozen=True)
class ModelOptimizer:
    """The optimizer of a policy for all weights of a model, of which it updates the trainable.

    Weights are flat vectors of the layout. Gradients and averages are of its trainable part.
    """

    optimizer: Optimizer
    layout: ParameterLayout

    @classmethod
    def of_policy(cls, policy: Policy) -> ModelOptimizer:
        return cls(optimizer_of(policy.optimizer), model_of(policy).layout)

    def start(self, weights: Weights) -> OptimizerState[Weights]:
        return self.optimizer.start(self._trainable(weights))

    def update(
        self, state: OptimizerState[Weights], weights: Weights, gradient: Weights
    ) -> Update[Weights]:
        """Return the next state and the next weights; frozen weights do not change."""
        if gradient.size != self.layout.trainable.size:
            raise errors.UpdateInvalid(
                f"the gradient has {gradient.size:,} coordinates, the model trains"
                f" {self.layout.trainable.size:,} of its {self.layout.size:,} parameters"
            )
        state, trained = self.optimizer.update(state, self._trainable(weights), gradient)
        _finite(state, trained)  # a plug-in need not check
        return state, self.layout.with_trainable_part(weights, trained)

    def _trainable(self, weights: Weights) -> Weights:
        if weights.shape != (self.layout.size,):
            raise errors.UpdateInvalid(
                f"the weights have shape {weights.shape}, the model has {self.layout.size:,}"
                " parameters"
            )
        return self.layout.trainable_part(weights)


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
    # In float64 for torch: a float64 root that is nearly exact rounds to the correct float32.
    return np.sqrt(values) if isinstance(values, np.ndarray) else values.double().sqrt().float()


def _finite(state: OptimizerState[Any], weights: Any) -> Update[Any]:
    for values in (weights, *state.averages):
        # 0 * x is 0 unless x is nan or infinite, and then so is the sum.
        if float((values * 0.0).sum()) != 0:
            raise errors.UpdateNotFinite
    return state, weights


def _check(state: OptimizerState[Any], weights: Any, gradient: Any, *, averages: int) -> None:
    if np.float32(2.0**-126) * np.float32(0.5) == 0:
        raise errors.DenormalsFlushed
    if len(state.averages) != averages:
        raise errors.UpdateInvalid(
            f"the state has {len(state.averages)} averages, this optimizer keeps {averages}"
        )
    arrays = {"weights": weights, "gradient": gradient}
    arrays |= {f"average {place}": average for place, average in enumerate(state.averages)}
    for name, array in arrays.items():
        if array.ndim != 1 or tuple(array.shape) != tuple(weights.shape):
            raise errors.UpdateInvalid(
                f"{name} has shape {tuple(array.shape)}, the weights {tuple(weights.shape)}:"
                " all must be flat and of one length"
            )
        if str(array.dtype).removeprefix("torch.") != "float32":
            raise errors.UpdateInvalid(f"{name} has dtype {array.dtype}, it must be float32")
