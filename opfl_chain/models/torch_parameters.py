"""Between a torch module's tensors and the canonical arrays of its layout, exactly."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from opfl_chain.models.errors import LayoutMismatch
from opfl_chain.models.parameters import Array, Parameter, ParameterLayout


def load_parameters(
    module: nn.Module, layout: ParameterLayout, arrays: Mapping[str, Array]
) -> None:
    """Copy canonical arrays into the module, which keeps its own dtype, and freeze the frozen."""
    tensors = _tensors(module, layout)
    for parameter in layout:
        array = arrays.get(parameter.name)
        if array is None or array.shape != parameter.shape:
            found = "missing" if array is None else f"of shape {array.shape}"
            raise LayoutMismatch(f"{parameter.name} is {found}, it must be {parameter.shape}")
        tensor = tensors[parameter.name]
        values = np.ascontiguousarray(parameter.to_torch(array))
        with torch.no_grad():
            tensor.copy_(torch.from_numpy(values.copy()))
        tensor.requires_grad_(parameter.trainable)


def parameter_arrays(module: nn.Module, layout: ParameterLayout) -> dict[str, Array]:
    """The module's parameters as canonical arrays."""
    tensors = _tensors(module, layout)
    return {parameter.name: _canonical(parameter, tensors[parameter.name]) for parameter in layout}


def gradient_arrays(module: nn.Module, layout: ParameterLayout) -> dict[str, Array]:
    """The gradients of the trainable parameters as canonical arrays, after `backward`."""
    tensors = _tensors(module, layout)
    gradients = {}
    for parameter in layout.trainable:
        gradient = tensors[parameter.name].grad
        if gradient is None:
            raise LayoutMismatch(f"{parameter.name} has no gradient: call backward() first")
        gradients[parameter.name] = _canonical(parameter, gradient)
    return gradients


def _canonical(parameter: Parameter, tensor: torch.Tensor) -> Array:
    # A copy: what torch does to the tensor next must not change what was read.
    return np.array(parameter.from_torch(tensor.detach().cpu().numpy()), order="C")


def _tensors(module: nn.Module, layout: ParameterLayout) -> dict[str, nn.Parameter]:
    tensors = dict(module.named_parameters())
    if set(tensors) != set(layout.names):
        different = set(tensors) ^ set(layout.names)
        raise LayoutMismatch(
            f"the module and the layout do not have the same parameters: {sorted(different)}"
        )
    return tensors
