"""LeNet as a torch module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from opfl_chain.models.lenet import LeNet


class LeNetModule(nn.Module):
    """Takes (batch, height, width, channels), so that both forms read the same bytes."""

    def __init__(self, model: LeNet) -> None:
        super().__init__()
        from opfl_chain.models.lenet import FILTER_SIDE

        first, second = model.filters
        self.conv1 = nn.Conv2d(model.input_shape[2], first, FILTER_SIDE, padding=model.padding)
        self.conv2 = nn.Conv2d(first, second, FILTER_SIDE)
        self._dense = tuple(model.dense_layers)
        for name, (inputs, outputs) in model.dense_layers.items():
            self.add_module(name, nn.Linear(inputs, outputs))

    def forward(self, examples: torch.Tensor) -> torch.Tensor:
        values = examples.permute(0, 3, 1, 2)
        values = functional.avg_pool2d(functional.relu(self.conv1(values)), 2)
        values = functional.avg_pool2d(functional.relu(self.conv2(values)), 2)
        # Channels last before they are flattened: the first dense layer is laid out that way.
        values = values.permute(0, 2, 3, 1).flatten(1)
        *inner, last = self._dense
        for name in inner:
            values = functional.relu(self.get_submodule(name)(values))
        logits: torch.Tensor = self.get_submodule(last)(values)
        return logits
