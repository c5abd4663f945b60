"""A compiled program: what members run, and whose hash they compare before they do."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from opfl_chain.mpc.errors import ExecutableInvalid
from opfl_chain.mpc.native import libspu
from opfl_chain.mpc.options import MpcOptions
from opfl_chain.mpc.shares import DTYPES

_MAGIC: Final = b"opfl executable 1\n"


class Visibility(StrEnum):
    """Whether an input is known to all members or shared among them."""

    PUBLIC = "public"
    SECRET = "secret"


@dataclass(frozen=True)
class Input:
    """An array that a program takes."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    visibility: Visibility


@dataclass(frozen=True)
class Output:
    """An array that a program yields, of which each member gets a share."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Executable:
    """SPU's code with the arrays it takes and yields, and the options it was compiled for."""

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    options: MpcOptions
    code: bytes

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that decides what is computed."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def native(self) -> Any:
        """A fresh `libspu.Executable`."""
        return libspu.Executable(
            name=self.name,
            input_names=[each.name for each in self.inputs],
            output_names=[each.name for each in self.outputs],
            code=self.code,
        )

    def to_bytes(self) -> bytes:
        header = {
            "name": self.name,
            "inputs": [asdict(each) for each in self.inputs],
            "outputs": [asdict(each) for each in self.outputs],
            "options": self.options.to_json(),
        }
        text = json.dumps(header, sort_keys=True).encode()
        return _MAGIC + len(text).to_bytes(8, "big") + text + self.code

    @classmethod
    def from_bytes(cls, data: bytes) -> Executable:
        """The executable that is stored as exactly these bytes."""
        try:
            executable = cls._parse(data)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ExecutableInvalid(f"not a stored executable: {error}") from error
        if executable.to_bytes() != data:
            raise ExecutableInvalid("not a stored executable: it would be stored as other bytes")
        return executable

    @classmethod
    def _parse(cls, data: bytes) -> Executable:
        if not data.startswith(_MAGIC):
            raise ValueError("it does not begin with the magic line")
        start = len(_MAGIC) + 8
        end = start + int.from_bytes(data[len(_MAGIC) : start], "big")
        header = json.loads(data[start:end])
        return cls(
            _text(header["name"]),
            tuple(
                Input(*_array(each), Visibility(each["visibility"])) for each in header["inputs"]
            ),
            tuple(Output(*_array(each)) for each in header["outputs"]),
            MpcOptions.from_json(header["options"]),
            data[end:],
        )


def _array(facts: Any) -> tuple[str, tuple[int, ...], str]:
    """Name, shape and dtype."""
    shape, dtype = facts["shape"], facts["dtype"]
    if not isinstance(shape, list) or not all(type(side) is int and side >= 0 for side in shape):
        raise ValueError(f"the shape {shape} is not one of natural numbers")
    if dtype not in DTYPES:
        raise ValueError(f"the dtype {dtype!r} is not one of {', '.join(DTYPES)}")
    return _text(facts["name"]), tuple(shape), dtype


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise ValueError(f"the name {name!r} is no text")
    name.encode()  # refuses half of a surrogate pair
    return name
