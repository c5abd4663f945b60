"""The client's local step: the gradient of one batch, in torch; and the accuracy of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from opfl_chain.learning import errors
from opfl_chain.learning.data.examples import Examples, features_of
from opfl_chain.learning.devices import deterministic, pick_device
from opfl_chain.learning.layout import ParameterLayout
from opfl_chain.learning.model import Model, relu_units
from opfl_chain.learning.operations.table import Operations, Recording
from opfl_chain.learning.registry import model_of
from opfl_chain.protocol.advice import lift_of
from opfl_chain.protocol.policy import DataRules, Policy
from opfl_chain.protocol.ring import FixedPoint

PreActivations = dict[str, NDArray[np.float32]]

DEFAULT_FRACTION_BITS = 22

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class StepResult:
    """The result of a step: the gradient to commit to, and its intermediate values."""

    gradient: Vector
    """The gradient of the mean loss, flat, in the canonical order of the trainable parameters."""
    loss: float
    logits: NDArray[np.float32]
    probabilities: NDArray[np.float64]
    """softmax of the logits, (batch, classes)."""
    pre_activations: PreActivations = field(default_factory=dict)
    """The input of each ReLU, by layer, in forward order. Empty unless requested."""

    @property
    def masks(self) -> dict[str, NDArray[np.bool_]]:
        """The masks of the ReLUs: true where the input is positive."""
        return {name: values > 0 for name, values in self.pre_activations.items()}

    @property
    def relu_inputs(self) -> Vector:
        """The pre-activations of all layers, flat; empty if the model has no ReLU."""
        values = (each.ravel() for each in self.pre_activations.values())
        return np.concatenate([np.empty(0, np.float32), *values])


class LocalStep:
    """Runs steps of one model on one device. Keeps no state between steps."""

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

    @classmethod
    def of_policy(
        cls, policy: Policy, device: torch.device | None = None, *, threads: int = 1
    ) -> LocalStep:
        model, data = model_of(policy), policy.data
        if data.input_shape != model.input_shape or data.classes != model.classes:
            raise errors.PolicyUnusable(
                f"the policy has examples of shape {data.input_shape} and {data.classes} classes,"
                f" model {model.name} takes {model.input_shape} and {model.classes}"
            )
        if policy.replay.advised and not relu_units(model):
            raise errors.PolicyUnusable(
                f"a {policy.replay.kind} replay follows the client through its ReLUs, and model"
                f" {model.name} has none: choose a rule with a plain replay"
            )
        return cls(
            model,
            device,
            threads=threads,
            fraction_bits=policy.fraction_bits,
            largest_lift=policy.largest_lift if policy.replay.advised else None,
        )

    def run(
        self,
        parameters: Mapping[str, NDArray[np.float32]],
        examples: NDArray[Any],
        labels: NDArray[Any],
        *,
        pre_activations: bool = False,
        masks: Mapping[str, NDArray[np.bool_]] | None = None,
        errors: NDArray[np.float64] | None = None,
    ) -> StepResult:
        """Run the step at these parameters, including frozen ones, on a batch of examples.

        With `masks`, ReLUs take these sides instead of comparing. With `errors`, these are the
        gradient by the logits, instead of softmax minus target.
        """
        self._check(examples, labels)
        layout, operations = self.model.layout, Recording(Operations("torch"), self._sides(masks))
        # Around everything: small copies split among threads cost more than the step.
        with deterministic(self.threads):
            held = {name: self.ring.nearest(array) for name, array in parameters.items()}
            tensors = parameter_tensors(layout, held, self.device)
            batch = torch.tensor(self.ring.nearest(examples), device=self.device)
            logits = self.model.logits(tensors, batch, operations)
            exact = logits.detach().double()
            targets = torch.tensor(labels.astype(np.int64), device=self.device)
            difference = loss_gradient(exact, targets)
            if errors is not None:
                difference = torch.tensor(errors, device=self.device)
            if self._has_nothing_to_learn(exact, labels):
                difference = torch.zeros_like(difference)
            gradient = gradient_of(logits, difference.float(), layout, tensors)
            recorded = operations.pre_activations if pre_activations else {}
            return StepResult(
                self._finite(gradient),
                float(functional.cross_entropy(exact, targets)),
                logits.detach().cpu().numpy(),
                torch.softmax(exact, 1).cpu().numpy(),
                {name: values.detach().cpu().numpy().copy() for name, values in recorded.items()},
            )

    def _sides(self, masks: Mapping[str, NDArray[np.bool_]] | None) -> dict[str, Any] | None:
        if masks is None:
            return None
        return {
            name: torch.tensor(mask.astype(np.float32), device=self.device)
            for name, mask in masks.items()
        }

    def _has_nothing_to_learn(self, logits: torch.Tensor, labels: NDArray[Any]) -> bool:
        if self.largest_lift is None:
            return False
        return lift_of(logits.cpu().numpy(), labels, self.largest_lift) > self.largest_lift

    def _finite(self, gradient: Vector) -> Vector:
        finite = np.isfinite(gradient)
        if not finite.all():
            index = int(np.argmin(finite))
            place = self.model.layout.trainable.locate(index)
            raise errors.GradientNotFinite(place, float(gradient[index]))
        return gradient

    def _check(self, examples: NDArray[Any], labels: NDArray[Any]) -> None:
        model = self.model
        if examples.shape[1:] != model.input_shape or not len(examples):
            raise errors.BatchInvalid(
                f"examples have shape {examples.shape}, model {model.name} takes"
                f" (batch, {', '.join(map(str, model.input_shape))})"
            )
        if examples.dtype.kind == "f" and examples.dtype != np.float32:
            raise errors.BatchInvalid(f"examples have dtype {examples.dtype}, they must be float32")
        if labels.shape != examples.shape[:1] or labels.dtype.kind not in "iu":
            raise errors.BatchInvalid(
                f"labels have shape {labels.shape} and dtype {labels.dtype}, they must be"
                f" {len(examples)} integers: one for each example"
            )
        if labels.min() < 0 or labels.max() >= model.classes:
            raise errors.BatchInvalid(f"labels are {labels}, they must be in [0, {model.classes})")


def loss_gradient(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the gradient of the mean cross-entropy by the logits: (softmax - target) / batch."""
    difference = torch.softmax(logits, 1)
    rows = torch.arange(len(labels), device=labels.device)
    difference[rows, labels] = 0.0
    difference[rows, labels] = -difference.sum(1)
    return difference / len(labels)


def parameter_tensors(
    layout: ParameterLayout, arrays: Mapping[str, NDArray[Any]], device: torch.device | None = None
) -> dict[str, torch.Tensor]:
    """Copy canonical arrays into tensors, of which the trainable ones record gradients."""
    tensors = {}
    for parameter in layout:
        array = arrays.get(parameter.name)
        if array is None or array.shape != parameter.shape:
            found = "missing" if array is None else f"of shape {array.shape}"
            raise errors.LayoutMismatch(
                f"{parameter.name} is {found}, it must be {parameter.shape}"
            )
        tensors[parameter.name] = torch.tensor(
            array, device=device, requires_grad=parameter.trainable
        )
    return tensors


def gradient_of(
    logits: torch.Tensor,
    cotangent: torch.Tensor,
    layout: ParameterLayout,
    tensors: Mapping[str, torch.Tensor],
) -> NDArray[np.float32]:
    """Return the gradient by the trainable parameters, flat in canonical order."""
    names = layout.trainable.names
    # The gradient of a scalar, to the bit: given a cotangent, torch would load sympy to compare the
    # shapes, which takes as long as a hundred steps.
    scalar = (logits * cotangent).sum()
    gradients = torch.autograd.grad(scalar, [tensors[name] for name in names], allow_unused=True)
    arrays = {}
    for name, gradient in zip(names, gradients, strict=True):
        if gradient is None:
            raise errors.LayoutMismatch(
                f"{name} has no gradient: the logits do not depend on it. Use it, or freeze it."
            )
        arrays[name] = gradient.cpu().numpy()
    return layout.trainable.flatten(arrays)


@dataclass(frozen=True)
class Evaluation:
    """The accuracy, as a fraction, and the mean cross-entropy."""

    accuracy: float
    loss: float
    examples: int


def evaluate(
    model: Model,
    parameters: Mapping[str, NDArray[np.float32]],
    examples: Examples,
    rules: DataRules,
    *,
    device: torch.device | None = None,
    batch_size: int = 500,
) -> Evaluation:
    """Evaluate a model, in batches to bound the memory; the result does not depend on them."""
    if not len(examples):
        raise errors.BatchInvalid("there are no examples to evaluate the model on")
    device = device or pick_device()
    tensors, operations = parameter_tensors(model.layout, parameters, device), Operations("torch")
    right, loss = 0, 0.0
    with torch.inference_mode():
        for start in range(0, len(examples), batch_size):
            batch = examples.take(slice(start, start + batch_size))
            features = torch.tensor(features_of(batch.images, rules), device=device)
            logits = model.logits(tensors, features, operations)
            labels = torch.tensor(batch.labels, device=device)
            right += int((logits.argmax(1) == labels).sum())
            loss += float(functional.cross_entropy(logits, labels, reduction="sum"))
    return Evaluation(right / len(examples), loss / len(examples), len(examples))
