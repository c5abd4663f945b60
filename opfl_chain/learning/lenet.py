"""LeNet in the two sizes of the paper.

Both pool by averages. The larger is Caffe's LeNet, which pools by maxima: a secure maximum costs a
comparison, the average none, and the number of parameters is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from opfl_chain.learning.layout import ParameterLayout, convolution, dense
from opfl_chain.learning.model import Model, Option
from opfl_chain.learning.operations.table import Operations

FILTER_SIDE = 5


@dataclass(frozen=True)
class LeNet(Model):
    """Two convolutions with ReLU and pooling, then dense layers with ReLU between them."""

    name: str
    filters: tuple[int, int]
    padding: int
    """The zero padding of the first convolution."""
    hidden: tuple[int, ...]
    input_shape: tuple[int, int, int] = (28, 28, 1)
    classes: int = 10
    frozen: str = ""
    """The layers or parameters that are not trained, separated by commas."""

    def with_options(self, *, frozen: str = "") -> LeNet:
        """Return this model with the options of a policy, such as `frozen = "conv1"`."""
        chosen = replace(self, frozen=frozen)
        _ = chosen.layout  # refuses names of other models here, not in the first step
        return chosen

    @property
    def options(self) -> dict[str, Option]:
        return {"frozen": self.frozen} if self.frozen else {}

    @cached_property
    def layout(self) -> ParameterLayout:
        first, second = self.filters
        parameters = ParameterLayout(
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
        return parameters.freeze(self.frozen)

    @cached_property
    def dense_layers(self) -> dict[str, tuple[int, int]]:
        """The input and output sizes of the dense layers, by name."""
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
        values = values.reshape(values.shape[0], -1)  # ordered by height, width, channel
        *inner, last = self.dense_layers
        for name in inner:
            values = operations.relu(_dense(operations, values, parameters, name), name=name)
        return _dense(operations, values, parameters, last)


def _dense(operations: Operations, values: Any, parameters: Mapping[str, Any], name: str) -> Any:
    weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
    return operations.dense(values, weight, bias, name=name)


LENET_61706 = LeNet("lenet-61706", filters=(6, 16), padding=2, hidden=(120, 84))
"""LeNet-5 with average pooling and ReLU, from the paper's cost table."""

LENET_431080 = LeNet("lenet-431080", filters=(20, 50), padding=0, hidden=(500,))
"""Caffe's LeNet except for its pooling, from the paper's evaluation."""
