"""What was sent to contracts, where it holds more than the events do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from eth_abi.exceptions import DecodingError

from opfl_chain.chain.abi import decode
from opfl_chain.chain.reverts import selector

_VERDICT = "(bytes,bytes)"
_BATCH_PROOF = "(bytes32,bytes32[],bytes)"


@dataclass(frozen=True)
class RegisterKey:
    FUNCTION: ClassVar[str] = "registerKey"
    TYPES: ClassVar[tuple[str, ...]] = ("bytes", "bytes")
    proof: bytes

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> RegisterKey:
        return cls(values[1])


@dataclass(frozen=True)
class Finalise:
    FUNCTION: ClassVar[str] = "finalise"
    TYPES: ClassVar[tuple[str, ...]] = ("uint96", "bytes32", "bytes32", "bytes[2]")
    signatures: tuple[bytes, ...]

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> Finalise:
        return cls(tuple(values[3]))


@dataclass(frozen=True)
class VetoWithReceipts:
    FUNCTION: ClassVar[str] = "vetoWithReceipts"
    TYPES: ClassVar[tuple[str, ...]] = ("uint96", "address", "bytes[2]")
    signatures: tuple[bytes, ...]

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> VetoWithReceipts:
        return cls(tuple(values[2]))


@dataclass(frozen=True)
class VetoWithAcquittals:
    FUNCTION: ClassVar[str] = "vetoWithAcquittals"
    TYPES: ClassVar[tuple[str, ...]] = ("uint96", "address", "bytes[2]")
    signatures: tuple[bytes, ...]

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> VetoWithAcquittals:
        return cls(tuple(values[2]))


@dataclass(frozen=True)
class RequestSlash:
    FUNCTION: ClassVar[str] = "request"
    TYPES: ClassVar[tuple[str, ...]] = ("uint96", "address", _VERDICT, "uint256", _BATCH_PROOF)
    commitment: bytes
    path: tuple[bytes, ...]
    signature: bytes

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> RequestSlash:
        commitment, path, signature = values[4]
        return cls(commitment, tuple(path), signature)


C = TypeVar("C", RegisterKey, Finalise, VetoWithReceipts, VetoWithAcquittals, RequestSlash)


def decode_call(data: bytes | None, kind: type[C]) -> C | None:
    """The call in what was sent, if it is one of this kind."""
    if data is None or data[:4] != selector(f"{kind.FUNCTION}({','.join(kind.TYPES)})"):
        return None
    try:
        return kind.from_abi(decode(kind.TYPES, data[4:]))
    except DecodingError:
        return None
