"""The client's local step: the gradient of one batch, in torch.

The step is defined so that a replay in fixed point comes as close to it as rounding allows, at no
cost to training. It is taken at the weights and examples as ring words hold them, which are float32
numbers too; the weights that the optimizer updates keep all their bits. And softmax minus target is
formed in float64, the label's as minus the others' sum: in float32 it has no correct digit left
when the model is certain. Where the model is more certain than the lifts of a guided replay reach,
there is nothing to learn, and the gradient is zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from opfl_chain.models.model import Model
from opfl_chain.models.registry import model_named
from opfl_chain.models.relus import relu_shapes
from opfl_chain.models.torch_parameters import gradient_arrays, load_parameters
from opfl_chain.protocol.advice import lift_of
from opfl_chain.protocol.fixed_point import FixedPoint
from opfl_chain.protocol.policy import GuidedReplay, Policy
from opfl_chain.training.activations import (
    PreActivations,
    recorded_pre_activations,
)
from opfl_chain.training.devices import deterministic, pick_device
from opfl_chain.training.errors import BatchInvalid, GradientNotFinite, PolicyUnusable

DEFAULT_FRACTION_BITS = 22

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class StepResult:
    """What a step gives: the gradient to commit to, and what it was computed through."""

    gradient: Vector
    """Of the mean loss, flat, in the canonical order of the trainable parameters."""
    loss: float
    logits: NDArray[np.float32]
    probabilities: NDArray[np.float64]
    """softmax of the logits, (batch, classes)."""
    pre_activations: PreActivations = field(default_factory=dict)
    """What went into each ReLU, by layer, in forward order. Empty unless asked for."""

    @property
    def masks(self) -> dict[str, NDArray[np.bool_]]:
        """Where each ReLU let its input through."""
        return {name: values > 0 for name, values in self.pre_activations.items()}


class LocalStep:
    """Steps of one model on one device. Holds a module, and no state between steps."""

    def __init__(
        self,
        model: Model,
        device: torch.device | None = None,
        *,
        threads: int = 1,
        fraction_bits: int = DEFAULT_FRACTION_BITS,
        largest_lift: int | None = None,
    ) -> None:
        self.model = model
        self.ring = FixedPoint(fraction_bits)
        self.largest_lift = largest_lift
        self.threads = threads
        self.device = device or pick_device()
        self._module = model.torch_module().to(self.device)

    @classmethod
    def of_policy(
        cls, policy: Policy, device: torch.device | None = None, *, threads: int = 1
    ) -> LocalStep:
        model, data = model_named(policy.model.name), policy.data
        if data.input_shape != model.input_shape or data.classes != model.classes:
            raise PolicyUnusable(
                f"the policy has examples of shape {data.input_shape} and {data.classes} classes,"
                f" model {model.name} takes {model.input_shape} and {model.classes}"
            )
        guided = isinstance(policy.replay, GuidedReplay)
        return cls(
            model,
            device,
            threads=threads,
            fraction_bits=policy.fraction_bits,
            largest_lift=policy.largest_lift if guided else None,
        )

    def run(
        self,
        parameters: Mapping[str, NDArray[np.float32]],
        examples: NDArray[Any],
        labels: NDArray[Any],
        *,
        pre_activations: bool = False,
    ) -> StepResult:
        """The step at these parameters, frozen ones included, on a batch of labelled examples."""
        self._check(examples, labels)
        layers = self._relu_layers if pre_activations else ()
        # Around all of it: where small copies are shared by threads they cost more than the step.
        with (
            deterministic(self.threads),
            recorded_pre_activations(self._module, layers) as seen,
        ):
            held = {name: self.ring.nearest(array) for name, array in parameters.items()}
            load_parameters(self._module, self.model.layout, held)
            self._module.zero_grad(set_to_none=True)
            logits = self._module(torch.tensor(self.ring.nearest(examples), device=self.device))
            exact = logits.detach().double()
            targets = torch.tensor(labels.astype(np.int64), device=self.device)
            difference = loss_gradient(exact, targets)
            if self._has_nothing_to_learn(exact, labels):
                difference = torch.zeros_like(difference)
            logits.backward(difference.float())
            return StepResult(
                self._gradient(),
                float(functional.cross_entropy(exact, targets)),
                logits.detach().cpu().numpy(),
                torch.softmax(exact, 1).cpu().numpy(),
                {name: seen[name] for name in layers},
            )

    def _has_nothing_to_learn(self, logits: torch.Tensor, labels: NDArray[Any]) -> bool:
        if self.largest_lift is None:
            return False
        return lift_of(logits.cpu().numpy(), labels, self.largest_lift) > self.largest_lift

    @cached_property
    def _relu_layers(self) -> tuple[str, ...]:
        return tuple(relu_shapes(self.model))

    def _gradient(self) -> Vector:
        layout = self.model.layout
        gradient = layout.trainable.flatten(gradient_arrays(self._module, layout))
        finite = np.isfinite(gradient)
        if not finite.all():
            index = int(np.argmin(finite))
            raise GradientNotFinite(layout.trainable.locate(index), float(gradient[index]))
        return gradient

    def _check(self, examples: NDArray[Any], labels: NDArray[Any]) -> None:
        model = self.model
        if examples.shape[1:] != model.input_shape or not len(examples):
            raise BatchInvalid(
                f"examples have shape {examples.shape}, model {model.name} takes"
                f" (batch, {', '.join(map(str, model.input_shape))})"
            )
        if examples.dtype.kind == "f" and examples.dtype != np.float32:
            raise BatchInvalid(f"examples have dtype {examples.dtype}, they must be float32")
        if labels.shape != examples.shape[:1] or labels.dtype.kind not in "iu":
            raise BatchInvalid(
                f"labels have shape {labels.shape} and dtype {labels.dtype}, they must be"
                f" {len(examples)} integers: one for each example"
            )
        if labels.min() < 0 or labels.max() >= model.classes:
            raise BatchInvalid(f"labels are {labels}, they must be in [0, {model.classes})")


def loss_gradient(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Of the mean cross-entropy by the logits: softmax minus target, over the batch."""
    difference = torch.softmax(logits, 1)
    rows = torch.arange(len(labels), device=labels.device)
    difference[rows, labels] = 0.0
    difference[rows, labels] = -difference.sum(1)
    return difference / len(labels)
