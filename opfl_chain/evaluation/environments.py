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
from opfl_chain.models.registry import model_named
from opfl_chain.training.local_step import LocalStep

Execution = Callable[[HonestStep], Computed]

RECORDED = "torch, 1 thread, oneDNN"
"""What records are made in, on a CPU."""


def environments_of(model: Model) -> dict[str, Execution]:
    """By name; what they compile serves all runs of a model."""
    return _environments_named(model.name)


@cache
def _environments_named(model: str) -> dict[str, Execution]:
    return {name: make(model_named(model)) for name, make in ENVIRONMENTS.items()}


def _torch(threads: int, onednn: bool) -> Callable[[Model], Execution]:
    def make(model: Model) -> Execution:
        local = LocalStep(model, torch.device("cpu"), threads=threads)

        def run(step: HonestStep) -> Computed:
            weights = model.layout.unflatten(step.weights)
            with _onednn(onednn):
                result = local.run(weights, step.examples, step.labels, pre_activations=True)
            values = [array.ravel() for array in result.pre_activations.values()]
            return Computed(result.gradient, result.logits, np.concatenate(values))

        return run

    return make


@contextmanager
def _onednn(enabled: bool) -> Iterator[None]:
    module: Any = torch.backends.mkldnn  # its stubs do not know that this can be set
    before, module.enabled = module.enabled, enabled
    try:
        yield
    finally:
        module.enabled = before


ENVIRONMENTS: Mapping[str, Callable[[Model], Execution]] = {
    RECORDED: _torch(1, True),
    "torch, 2 threads, oneDNN": _torch(2, True),
    "torch, 1 thread, no oneDNN": _torch(1, False),
    "torch, 2 threads, no oneDNN": _torch(2, False),
    "XLA, float32": lambda model: FloatStep(model).run,
    "XLA, float64": lambda model: FloatStep(model, double=True).run,
    "TF32-like products (stand-in)": lambda model: (
        FloatStep(model, NarrowOperations(TF32_BITS)).run
    ),
    "bf16-like products (stand-in)": lambda model: (
        FloatStep(model, NarrowOperations(BF16_BITS)).run
    ),
}
