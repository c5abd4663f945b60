"""Places where a client may train: the same step in other orders of summation, and other numbers.

The torch ones and XLA's are real. Two are stand-ins for GPUs that this machine does not have, and
say so in their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch

from opfl_chain.calibration.steps import HonestStep
from opfl_chain.evaluation.float_gradients import Computed, FloatStep
from opfl_chain.evaluation.narrow_products import BF16_BITS, TF32_BITS, NarrowOperations
from opfl_chain.models.model import Model
from opfl_chain.models.operations import Operations
from opfl_chain.models.registry import model_named
from opfl_chain.protocol.policy import GuidedReplay, Policy
from opfl_chain.training.local_step import LocalStep

Execution = Callable[[HonestStep], Computed]
Make = Callable[[Model, int | None], Execution]
"""From a model and its largest lift, None where the replay is plain."""

RECORDED = "torch, 1 thread, oneDNN"
"""What records are made in, on a CPU."""


def environments_of(policy: Policy) -> dict[str, Execution]:
    """By name; what they compile serves all runs of a model and rule."""
    lift = policy.largest_lift if isinstance(policy.replay, GuidedReplay) else None
    return _environments(policy.model.name, lift)


@cache
def _environments(model: str, largest_lift: int | None) -> dict[str, Execution]:
    return {name: make(model_named(model), largest_lift) for name, make in ENVIRONMENTS.items()}


def _torch(threads: int, onednn: bool) -> Make:
    def make(model: Model, largest_lift: int | None) -> Execution:
        device = torch.device("cpu")
        local = LocalStep(model, device, threads=threads, largest_lift=largest_lift)

        def run(step: HonestStep) -> Computed:
            weights = model.layout.unflatten(step.weights)
            with _onednn(onednn):
                result = local.run(weights, step.examples, step.labels, pre_activations=True)
            values = [array.ravel() for array in result.pre_activations.values()]
            return Computed(result.gradient, result.logits, np.concatenate(values))

        return run

    return make


def _xla(operations: Operations | None = None, double: bool = False) -> Make:
    def make(model: Model, largest_lift: int | None) -> Execution:
        return FloatStep(model, operations, double=double, largest_lift=largest_lift).run

    return make


@contextmanager
def _onednn(enabled: bool) -> Iterator[None]:
    module: Any = torch.backends.mkldnn  # its stubs do not know that this can be set
    before, module.enabled = module.enabled, enabled
    try:
        yield
    finally:
        module.enabled = before


ENVIRONMENTS: Mapping[str, Make] = {
    RECORDED: _torch(1, True),
    "torch, 2 threads, oneDNN": _torch(2, True),
    "torch, 1 thread, no oneDNN": _torch(1, False),
    "torch, 2 threads, no oneDNN": _torch(2, False),
    "XLA, float32": _xla(),
    "XLA, float64": _xla(double=True),
    "TF32-like products (stand-in)": _xla(NarrowOperations(TF32_BITS)),
    "bf16-like products (stand-in)": _xla(NarrowOperations(BF16_BITS)),
}
