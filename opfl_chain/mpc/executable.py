"""A compiled program: what members run, and whose hash they compare before they do."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from opfl_chain.mpc.errors import ExecutableInvalid, OptionsInvalid
from opfl_chain.mpc.native import libspu
from opfl_chain.mpc.options import MpcOptions

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
        try:
            if not data.startswith(_MAGIC):
                raise ValueError("it does not begin with the magic line")
            start = len(_MAGIC) + 8
            end = start + int.from_bytes(data[len(_MAGIC) : start], "big")
            header = json.loads(data[start:end])
            return cls(
                header["name"],
                tuple(
                    Input(
                        each["name"],
                        tuple(each["shape"]),
                        each["dtype"],
                        Visibility(each["visibility"]),
                    )
                    for each in header["inputs"]
                ),
                tuple(
                    Output(each["name"], tuple(each["shape"]), each["dtype"])
                    for each in header["outputs"]
                ),
                MpcOptions.from_json(header["options"]),
                data[end:],
            )
        except (ValueError, KeyError, TypeError, OptionsInvalid) as error:
            raise ExecutableInvalid(f"not a stored executable: {error}") from error
