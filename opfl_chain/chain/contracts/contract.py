"""The base of the generated bindings: contracts, calls, receipts and events in Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import IntEnum
from functools import cache
from typing import Any, ClassVar, NoReturn, Self

from eth_abi.exceptions import DecodingError, EncodingError
from eth_typing import ChecksumAddress
from eth_utils.crypto import keccak

from opfl_chain.chain.abi import decode, decode_event_data, encode, selector
from opfl_chain.chain.errors import BadArgument, UnexpectedData
from opfl_chain.chain.rpc import BlockTag, Rpc, checksum, unhex

_SHOWN_CHARACTERS = 42


@dataclass(frozen=True)
class Call:
    """A prepared call. `to` is None for contract creation; if `gas` is None it is estimated."""

    to: ChecksumAddress | None
    data: bytes
    description: str
    value: int = 0
    gas: int | None = None
    spare_gas: int = 0
    """Gas beyond the estimate, for calls that cost more if other transactions come first."""

    def with_gas(self, gas: int) -> Call:
        """Return the call with a fixed gas limit; it is then sent without an estimate."""
        return replace(self, gas=gas)

    def with_spare_gas(self, gas: int) -> Call:
        """Return the call with gas beyond the estimate; unused gas costs nothing."""
        return replace(self, spare_gas=gas)


@dataclass(frozen=True)
class Log:
    """One event, not yet decoded by the bindings."""

    address: ChecksumAddress
    topics: tuple[bytes, ...]
    data: bytes
    block_number: int
    block_hash: str
    transaction_hash: str
    index: int

    @staticmethod
    def from_rpc(log: Mapping[str, Any]) -> Log:
        return Log(
            address=checksum(log["address"]),
            topics=tuple(unhex(topic) for topic in log["topics"]),
            data=unhex(log["data"]),
            block_number=int(log["blockNumber"], 16),
            block_hash=log["blockHash"],
            transaction_hash=log["transactionHash"],
            index=int(log["logIndex"], 16),
        )


@dataclass(frozen=True)
class Receipt:
    """A transaction that was executed and did not revert."""

    transaction_hash: str
    block_number: int
    block_hash: str
    gas_used: int
    gas_price: int
    contract_address: ChecksumAddress | None
    logs: tuple[Log, ...]

    @staticmethod
    def from_rpc(receipt: Mapping[str, Any]) -> Receipt:
        created = receipt.get("contractAddress")
        return Receipt(
            transaction_hash=receipt["transactionHash"],
            block_number=int(receipt["blockNumber"], 16),
            block_hash=receipt["blockHash"],
            gas_used=int(receipt["gasUsed"], 16),
            gas_price=int(receipt["effectiveGasPrice"], 16),
            contract_address=checksum(created) if created else None,
            logs=tuple(Log.from_rpc(log) for log in receipt["logs"]),
        )


class Contract:
    """A contract at an address. View functions query the node; all others prepare a `Call`."""

    NAME: ClassVar[str]

    def __init__(self, rpc: Rpc, address: str) -> None:
        self.address = checksum(address)
        self._rpc = rpc

    def __repr__(self) -> str:
        return f"{self.NAME}({self.address})"

    def _read(
        self,
        name: str,
        types: tuple[str, ...],
        returns: tuple[str, ...],
        arguments: Mapping[str, Any],
        block: BlockTag,
    ) -> tuple[Any, ...]:
        what = _describe(self.NAME, name, arguments)
        data = _encode_call(what, name, types, arguments)
        answer = self._rpc.call(self.address, data, block=block)
        try:
            return tuple(decode(returns, answer))
        except DecodingError as error:
            raise UnexpectedData(
                f"{what} at {self.address} returned 0x{answer.hex()}, which is not "
                f"({', '.join(returns)}). Is {self.NAME} deployed there, in this version?"
            ) from error

    def _prepare(
        self, name: str, types: tuple[str, ...], arguments: Mapping[str, Any], value: int = 0
    ) -> Call:
        what = _describe(self.NAME, name, arguments)
        return Call(self.address, _encode_call(what, name, types, arguments), what, value)

    @classmethod
    def _creation(cls, bytecode: bytes, types: tuple[str, ...], values: Mapping[str, Any]) -> Call:
        what = _describe("new", cls.NAME, values)
        return Call(None, bytecode + _encode(what, types, values), what)


class ContractEnum(IntEnum):
    """The base class of generated enums."""

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        known = ", ".join(f"{member.value} {member.name.lower()}" for member in cls)
        raise UnexpectedData(
            f"{value!r} is not a {cls.__name__}, only {known}. Are the bindings for another "
            "version of the contract?"
        )


class Event(ABC):
    """The base class of generated events; subclasses register themselves by topic."""

    SIGNATURE: ClassVar[str]
    INDEXED: ClassVar[tuple[str, ...]]
    PLAIN: ClassVar[tuple[str, ...]]
    TOPIC: ClassVar[bytes]

    def __init_subclass__(cls) -> None:
        cls.TOPIC = keccak(text=cls.SIGNATURE)
        _BY_TOPIC[cls.TOPIC] = cls

    @classmethod
    def decode(cls, log: Log) -> Self:
        """Decode a log of this event."""
        if log.topics[:1] != (cls.TOPIC,) or len(log.topics) != 1 + len(cls.INDEXED):
            raise UnexpectedData(f"{log} is not a {cls.SIGNATURE}. Use `decode_event`.")
        try:
            indexed = [
                decode([kind], topic)[0]
                for kind, topic in zip(cls.INDEXED, log.topics[1:], strict=True)
            ]
            return cls._from_abi(indexed, decode_event_data(cls.PLAIN, log.data))
        except (DecodingError, UnexpectedData) as error:
            raise UnexpectedData(f"{log} does not decode as {cls.SIGNATURE}: {error}") from error

    @classmethod
    def in_receipt(cls, receipt: Receipt) -> Self:
        """Return the first event of this type that a transaction emitted."""
        for log in receipt.logs:
            if log.topics[:1] == (cls.TOPIC,):
                return cls.decode(log)
        raise UnexpectedData(f"{receipt.transaction_hash} emitted no {cls.SIGNATURE}")

    @classmethod
    @abstractmethod
    def _from_abi(cls, indexed: Sequence[Any], plain: Sequence[Any]) -> Self:
        """Build the event from its decoded fields."""


_BY_TOPIC: dict[bytes, type[Event]] = {}


def decode_event(log: Log) -> Event:
    """Decode a log of any contract that has bindings."""
    kind = _BY_TOPIC.get(log.topics[0]) if log.topics else None
    if kind is None:
        raise UnexpectedData(
            f"{log.address} emitted an unknown event: {log}. Are the bindings for another version "
            "of the contract?"
        )
    return kind.decode(log)


def plain(value: Any) -> Any:
    """Convert a value for eth_abi: dataclasses become tuples at any depth."""
    if is_dataclass(value) and not isinstance(value, type):
        return tuple(plain(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _encode_call(
    what: str, name: str, types: tuple[str, ...], arguments: Mapping[str, Any]
) -> bytes:
    return _selector(name, types) + _encode(what, types, arguments)


def _encode(what: str, types: tuple[str, ...], arguments: Mapping[str, Any]) -> bytes:
    values = [plain(value) for value in arguments.values()]
    try:
        return encode(types, values)
    except (EncodingError, TypeError) as error:
        raise BadArgument(f"{what}: {_culprit(types, arguments) or error}") from error


def _culprit(types: tuple[str, ...], arguments: Mapping[str, Any]) -> str:
    for kind, (name, value) in zip(types, arguments.items(), strict=True):
        try:
            encode([kind], [plain(value)])
        except (EncodingError, TypeError) as error:
            reason = str(error).rpartition(": ")[2]
            return f"{name} must be {kind}, but {_show(value)} is not: {reason}"
    return ""


def _describe(owner: str, name: str, arguments: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{key}={_show(value)}" for key, value in arguments.items())
    return f"new {name}({shown})" if owner == "new" else f"{owner}.{name}({shown})"


def _show(value: Any) -> str:
    text = f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


@cache
def _selector(name: str, types: tuple[str, ...]) -> bytes:
    return selector(f"{name}({','.join(types)})")
