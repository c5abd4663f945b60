"""What goes into every ReLU of a model.

A value within rounding of 0 may be on the other side of it in the replay, which moves the gradient
by far more than rounding does. A replay that is told on which side the client was has no such case.

ReLUs are named after their layers, in the order of the model's JAX form. Arrays are of that form's
shapes too: (batch, height, width, channels) or (batch, width).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

PreActivations = dict[str, NDArray[np.float32]]


@contextmanager
def recorded_pre_activations(module: nn.Module, layers: Iterable[str]) -> Iterator[PreActivations]:
    """Record, while the context lasts, what these layers give to their ReLUs."""
    seen: PreActivations = {}

    def record(name: str) -> Any:
        def hook(layer: nn.Module, inputs: Any, output: torch.Tensor) -> None:
            del layer, inputs
            seen[name] = _channels_last(output.detach()).cpu().numpy().copy()

        return hook

    handles = [module.get_submodule(name).register_forward_hook(record(name)) for name in layers]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _channels_last(values: torch.Tensor) -> torch.Tensor:
    return values.permute(0, 2, 3, 1).contiguous() if values.dim() == 4 else values
