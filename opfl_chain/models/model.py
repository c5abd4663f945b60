"""What a model offers, whatever its architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from opfl_chain.models.operations import Operations
from opfl_chain.models.parameters import ParameterLayout

if TYPE_CHECKING:
    from torch import nn


class Model(Protocol):
    """A classifier in two forms that compute the same function of the same parameters."""

    @property
    def name(self) -> str: ...

    @property
    def layout(self) -> ParameterLayout: ...

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one example; a batch has one axis more, in front."""

    @property
    def classes(self) -> int: ...

    def logits(self, parameters: Mapping[str, Any], examples: Any, operations: Operations) -> Any:
        """The JAX form, (batch, classes), made of the given operations."""

    def torch_module(self) -> nn.Module:
        """The torch form. It takes the same batch of examples and has the layout's names."""
