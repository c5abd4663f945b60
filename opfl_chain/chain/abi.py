"""ABI coding, strict about lengths, and reverts as exceptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from eth_abi.codec import ABICodec
from eth_abi.decoding import StringDecoder
from eth_abi.encoding import BytesEncoder
from eth_abi.exceptions import DecodingError
from eth_abi.registry import ABIRegistry, BaseEquals, registry
from eth_utils.crypto import keccak

from opfl_chain.chain.errors import ChainError, UnexpectedData


class _ExactBytesEncoder(BytesEncoder):
    """Refuses short byte strings: padded with zeros, a mistake would become a commitment."""

    def validate_value(self, value: Any) -> None:
        super().validate_value(value)  # type: ignore[no-untyped-call]
        wanted = (self.value_bit_size or 0) // 8
        if len(value) != wanted:
            self.invalidate_value(value, msg=f"has {len(value)} bytes instead of {wanted}")


class _AnyTextDecoder(StringDecoder):
    def __init__(self) -> None:
        super().__init__("backslashreplace")  # type: ignore[no-untyped-call]


def _strict_registry() -> ABIRegistry:
    strict: ABIRegistry = registry.copy()  # type: ignore[no-untyped-call]
    label = "bytes<M>"
    any_size = BaseEquals("bytes", with_sub=True)  # type: ignore[no-untyped-call]
    strict.unregister_encoder(label)
    strict.register_encoder(any_size, _ExactBytesEncoder, label=label)
    return strict


def _accepting_any_text(strict: ABIRegistry) -> ABIRegistry:
    lenient: ABIRegistry = strict.copy()  # type: ignore[no-untyped-call]
    text = BaseEquals("string")  # type: ignore[no-untyped-call]
    lenient.unregister_decoder("string")
    lenient.register_decoder(text, _AnyTextDecoder, label="string")
    return lenient


_CODEC = ABICodec(_strict_registry())
_EVENT_CODEC = ABICodec(_accepting_any_text(_strict_registry()))
encode = _CODEC.encode


def decode(types: Sequence[str], data: bytes) -> tuple[Any, ...]:
    """Decode `data`. Raises DecodingError also where eth_abi raises other Python errors."""
    return _decode(_CODEC, types, data)


def decode_event_data(types: Sequence[str], data: bytes) -> tuple[Any, ...]:
    """Decode event data, whose text need not be UTF-8: anyone can announce such an endpoint on
    chain, and it must not block readers of the events.
    """
    return _decode(_EVENT_CODEC, types, data)


def _decode(codec: ABICodec, types: Sequence[str], data: bytes) -> tuple[Any, ...]:
    try:
        return codec.decode(types, data)
    except (OverflowError, UnicodeDecodeError) as error:
        raise DecodingError(str(error)) from error


_ERROR_STRING = bytes.fromhex("08c379a0")
_PANIC = bytes.fromhex("4e487b71")
_PANIC_MEANINGS = {
    0x01: "an assertion failed",
    0x11: "arithmetic over- or underflow",
    0x12: "division by zero",
    0x21: "invalid enum value",
    0x31: "pop from an empty array",
    0x32: "array index out of bounds",
    0x41: "out of memory",
    0x51: "call of an uninitialised function",
}


class Reverted(ChainError):
    """The contract reverted. `context` describes the call."""

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
            f"0x{data[4:].hex()}. Are the bindings for another version of the contract?"
        )


@dataclass(eq=False)
class CustomError(Reverted):
    """The base class of generated errors; subclasses register themselves by selector.

    A subclass's docstring is the error's documentation in Solidity, its fields are the arguments.
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
    """Return the exception for a contract's revert data."""
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
        pass  # only looks like a known error, so it is reported as raw data
    return UnknownCustomError(data)


def _show(value: object) -> str:
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
