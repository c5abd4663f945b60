"""Many copies of a model at once, each with weights of its own, in torch.

`Operations` of a model are defined on a batch. Here every example of the batch has its own weights,
so that all attacks of a batch take one pass: products are batched, and autograd sees one sum.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from opfl_chain.models.model import Model


class OwnWeights:
    """`Operations` documents the methods; every weight has one axis more, in front."""

    def convolution(
        self,
        examples: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        *,
        padding: int,
        name: str,
    ) -> torch.Tensor:
        del name
        around = (padding, padding)
        padded = functional.pad(examples, (0, 0, *around, *around)) if padding else examples
        count, side, _, inputs, outputs = weight.shape
        windows = padded.unfold(1, side, 1).unfold(2, side, 1).permute(0, 1, 2, 4, 5, 3)
        height, width = windows.shape[1:3]
        flat = windows.reshape(count, height * width, side * side * inputs)
        products = torch.baddbmm(bias[:, None], flat, weight.reshape(count, -1, outputs))
        return products.reshape(count, height, width, outputs)

    def dense(
        self, examples: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, *, name: str
    ) -> torch.Tensor:
        del name
        return torch.baddbmm(bias[:, None], examples[:, None], weight)[:, 0]

    def relu(self, values: torch.Tensor, *, name: str) -> torch.Tensor:
        del name
        return functional.relu(values)

    def average_pool(self, images: torch.Tensor, *, name: str) -> torch.Tensor:
        del name
        count, height, width, channels = images.shape
        squares = images.reshape(count, height // 2, 2, width // 2, 2, channels)
        return squares.mean((2, 4))


def logits_at(model: Model, weights: torch.Tensor, examples: torch.Tensor) -> torch.Tensor:
    """The logits of example i at row i of the weights, which are flat in canonical order."""
    layout = model.layout
    # One split: the gradient of as many slices would be as many vectors of full length.
    parts = torch.split_with_sizes(weights, [parameter.size for parameter in layout], dim=1)
    parameters = {
        parameter.name: part.reshape(len(weights), *parameter.shape)
        for parameter, part in zip(layout, parts, strict=True)
    }
    logits: torch.Tensor = model.logits(parameters, examples, OwnWeights())
    return logits
