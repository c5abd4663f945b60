"""A program: a JAX function of named arrays, some of which are secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from opfl_chain.mpc.errors import CompilationFailed
from opfl_chain.mpc.executable import Input, Visibility
from opfl_chain.mpc.shares import DTYPES

Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Program:
    """`function` takes all inputs by name and returns all outputs by name.

    It is traced with 64-bit types enabled. Whatever array it closes over becomes a constant of the
    code, which may not exceed 2 GB: weights are inputs.
    """

    name: str
    function: Callable[[dict[str, Any]], Arrays]
    inputs: tuple[Input, ...]

    def __post_init__(self) -> None:
        names = [each.name for each in self.inputs]
        if len(set(names)) != len(names):
            raise CompilationFailed(self.name, f"inputs are not unique: {', '.join(names)}")
        for each in self.inputs:
            if each.dtype not in DTYPES:
                allowed = ", ".join(DTYPES)
                raise CompilationFailed(
                    self.name, f"input {each.name!r} is {each.dtype}, it must be one of {allowed}"
                )


def public(name: str, shape: tuple[int, ...], dtype: str = "float32") -> Input:
    """An input that every member knows."""
    return Input(name, shape, dtype, Visibility.PUBLIC)


def secret(name: str, shape: tuple[int, ...], dtype: str = "float32") -> Input:
    """An input of which every member holds a share."""
    return Input(name, shape, dtype, Visibility.SECRET)
