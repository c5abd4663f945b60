"""Reverts as exceptions: the one table from custom-error selectors to types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from eth_abi.exceptions import DecodingError
from eth_utils.crypto import keccak

from opfl_chain.chain.abi import decode
from opfl_chain.chain.errors import ChainError, UnexpectedData

_ERROR_STRING = bytes.fromhex("08c379a0")
_PANIC = bytes.fromhex("4e487b71")
_PANIC_MEANINGS = {
    0x01: "an assertion failed",
    0x11: "arithmetic over- or underflow",
    0x12: "division by zero",
    0x21: "a value that its enum does not have",
    0x31: "pop from an empty array",
    0x32: "array index out of bounds",
    0x41: "too much memory",
    0x51: "call of an uninitialised function",
}


class Reverted(ChainError):
    """The contract refused. `context` says what was being done when it did."""

    context: str = ""

    def __str__(self) -> str:
        what = self._explain()
        return f"{self.context}: {what}" if self.context else what

    def _explain(self) -> str:
        return "; ".join(str(arg) for arg in self.args) or "reverted without a reason"


class RevertedWithReason(Reverted):
    """`require(..., "reason")`"""

    def _explain(self) -> str:
        return f"reverted with reason {self.args[0]!r}"


class Panicked(Reverted):
    """Solidity's own checks: overflow, index out of bounds and the like."""

    def _explain(self) -> str:
        (code,) = self.args
        return f"panic 0x{code:02x}: {_PANIC_MEANINGS.get(code, 'unknown code')}"


class UnknownCustomError(Reverted):
    """Revert data of an error that no binding declares."""

    def _explain(self) -> str:
        (data,) = self.args
        return (
            f"reverted with unknown custom error 0x{data[:4].hex()} and arguments "
            f"0x{data[4:].hex()}. Is the contract of another version than the bindings?"
        )


@dataclass(eq=False)
class CustomError(Reverted):
    """The base of generated error types; declaring a child enters it in the table.

    A child's docstring is the error's documentation in Solidity, its fields are the arguments.
    """

    SIGNATURE: ClassVar[str] = ""
    TYPES: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        _BY_SELECTOR[selector(cls.SIGNATURE)] = cls

    @classmethod
    def from_abi(cls, values: Sequence[Any]) -> Self:
        return cls(*values)

    def _explain(self) -> str:
        arguments = ", ".join(f"{f.name}={_show(getattr(self, f.name))}" for f in fields(self))
        return f"{type(self).__name__}({arguments}): {type(self).__doc__}"


_BY_SELECTOR: dict[bytes, type[CustomError]] = {}


def selector(signature: str) -> bytes:
    return keccak(text=signature)[:4]


def decode_revert(data: bytes, message: str = "") -> Reverted:
    """The exception for what a contract returned when it reverted."""
    if len(data) < 4:
        return Reverted(message) if message else Reverted()
    head, body = data[:4], data[4:]
    try:
        if head == _ERROR_STRING:
            return RevertedWithReason(*decode(["string"], body))
        if head == _PANIC:
            return Panicked(*decode(["uint256"], body))
        if error := _BY_SELECTOR.get(head):
            return error.from_abi(decode(error.TYPES, body))
    except (DecodingError, UnexpectedData):
        pass  # data that only looks like a known error is reported as it is
    return UnknownCustomError(data)


def _show(value: object) -> str:
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
