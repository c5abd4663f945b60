"""LeNet as a torch module, as torch's users write it."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from opfl_chain.learning.lenet import FILTER_SIDE, LeNet

TORCH_AXES = {4: (3, 2, 0, 1), 2: (1, 0), 1: (0,)}
"""The order of axes in torch, by their number: of convolutions, dense layers and biases."""


class LeNetModule(nn.Module):
    """LeNet on (batch, height, width, channels), so that both read the same bytes."""

    def __init__(self, model: LeNet) -> None:
        super().__init__()
        first, second = model.filters
        self.conv1 = nn.Conv2d(model.input_shape[2], first, FILTER_SIDE, padding=model.padding)
        self.conv2 = nn.Conv2d(first, second, FILTER_SIDE)
        self._dense = tuple(model.dense_layers)
        for name, (inputs, outputs) in model.dense_layers.items():
            self.add_module(name, nn.Linear(inputs, outputs))

    def load(self, arrays: dict) -> None:
        with torch.no_grad():
            for name, tensor in self.named_parameters():
                array = arrays[name]
                tensor.copy_(torch.tensor(array.transpose(TORCH_AXES[array.ndim])))

    def gradients(self) -> dict:
        """The gradients in canonical order, after `backward`."""
        found = {}
        for name, tensor in self.named_parameters():
            gradient = tensor.grad.numpy()
            axes = TORCH_AXES[gradient.ndim]
            found[name] = gradient.transpose([axes.index(axis) for axis in range(len(axes))])
        return found

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
