"""LeNet in the two sizes of the paper.

Both pool by averages. The larger is Caffe's LeNet, which pools by maxima: a secure maximum costs a
comparison, the average none, and the number of parameters is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from opfl_chain.models.operations import Operations
from opfl_chain.models.parameters import ParameterLayout, convolution, dense

if TYPE_CHECKING:
    from torch import nn

FILTER_SIDE = 5


@dataclass(frozen=True)
class LeNet:
    """Two convolutions with ReLU and pooling, then dense layers with ReLU between them."""

    name: str
    filters: tuple[int, int]
    padding: int
    """Zeros around the image, for the first convolution."""
    hidden: tuple[int, ...]
    input_shape: tuple[int, int, int] = (28, 28, 1)
    classes: int = 10

    @cached_property
    def layout(self) -> ParameterLayout:
        first, second = self.filters
        return ParameterLayout(
            (
                *convolution("conv1", FILTER_SIDE, self.input_shape[2], first),
                *convolution("conv2", FILTER_SIDE, first, second),
                *(
                    parameter
                    for name, (inputs, outputs) in self.dense_layers.items()
                    for parameter in dense(name, inputs, outputs)
                ),
            )
        )

    @cached_property
    def dense_layers(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of the dense layers by name."""
        side = (self.input_shape[0] + 2 * self.padding - FILTER_SIDE + 1) // 2
        side = (side - FILTER_SIDE + 1) // 2
        widths = (side * side * self.filters[1], *self.hidden, self.classes)
        return {f"fc{number}": pair for number, pair in enumerate(pairwise(widths), 1)}

    def logits(self, parameters: Mapping[str, Any], examples: Any, operations: Operations) -> Any:
        values = examples
        for name, padding in (("conv1", self.padding), ("conv2", 0)):
            values = operations.convolution(
                values,
                parameters[f"{name}.weight"],
                parameters[f"{name}.bias"],
                padding=padding,
                name=name,
            )
            values = operations.average_pool(operations.relu(values, name=name), name=name)
        values = values.reshape(values.shape[0], -1)  # (height, width, channel), as torch does too
        *inner, last = self.dense_layers
        for name in inner:
            values = operations.relu(_dense(operations, values, parameters, name), name=name)
        return _dense(operations, values, parameters, last)

    def torch_module(self) -> nn.Module:
        from opfl_chain.models.lenet_torch import LeNetModule

        return LeNetModule(self)


def _dense(operations: Operations, values: Any, parameters: Mapping[str, Any], name: str) -> Any:
    weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
    return operations.dense(values, weight, bias, name=name)


LENET_61706 = LeNet("lenet-61706", filters=(6, 16), padding=2, hidden=(120, 84))
"""LeNet-5 with average pooling and ReLU, of the paper's cost table."""

LENET_431080 = LeNet("lenet-431080", filters=(20, 50), padding=0, hidden=(500,))
"""Caffe's LeNet but for its pooling, of the paper's evaluation."""
