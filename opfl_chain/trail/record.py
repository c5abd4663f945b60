"""The record of a job: its events, their call data, and the final state of the contracts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

from eth_abi.exceptions import DecodingError

from opfl_chain.chain.abi import decode, selector
from opfl_chain.chain.bindings.types import Account, Client, JobProgress, JobTerms, Role, Round
from opfl_chain.chain.contracts.contract import Event
from opfl_chain.protocol.identifiers import Address, JobId, RoundId, RoundNumber, job_and_number

_VERDICT = "(bytes,bytes)"
_BATCH_PROOF = "(bytes32,bytes32[],bytes)"
E = TypeVar("E", bound=Event)
E_co = TypeVar("E_co", bound=Event, covariant=True)
Place = tuple[int, int]
"""Block number and log index: the order of the chain."""
# The fields in which events name the account that they are about.
_WHO = ("client", "member", "owner", "account")


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
    """Decode call data if it is a call of this kind."""
    if data is None or data[:4] != selector(f"{kind.FUNCTION}({','.join(kind.TYPES)})"):
        return None
    try:
        return kind.from_abi(decode(kind.TYPES, data[4:]))
    except DecodingError:
        return None


@dataclass(frozen=True)
class Entry(Generic[E_co]):
    """One event and its place on chain."""

    event: E_co
    contract: str
    block: int
    block_hash: str
    transaction: str
    log_index: int

    @property
    def name(self) -> str:
        return type(self.event).__name__

    @property
    def place(self) -> Place:
        return self.block, self.log_index

    @property
    def round(self) -> RoundNumber | None:
        """The number of the round, for events of a round."""
        round_id: RoundId | None = getattr(self.event, "round", None)
        return None if round_id is None else job_and_number(round_id)[1]

    @property
    def who(self) -> Address | None:
        """The account that the event is about, if it is about one."""
        return next((getattr(self.event, name) for name in _WHO if hasattr(self.event, name)), None)


@dataclass(frozen=True)
class FinalState:
    """The state of the contracts at the trail's last block."""

    terms: JobTerms
    progress: JobProgress
    job_count: int
    burned: int
    held: int
    """The balance of the contract Deposits in wei."""
    stakes: Mapping[tuple[Role, Address], Account]
    credits: Mapping[Address, int]
    accumulators: Mapping[RoundNumber, bytes]
    seeds: Mapping[RoundNumber, bytes]
    """Zero for a round without a beacon."""
    withheld: Mapping[RoundNumber, frozenset[Address]]
    """Members whose parts are missing, for rounds without a beacon."""
    rounds: Mapping[RoundNumber, Round]
    clients: Mapping[Address, Client]


@dataclass(frozen=True)
class Trail:
    """Everything on chain that belongs to one job, up to a block."""

    chain_id: int
    genesis: str
    contracts: Mapping[str, Address]
    job: JobId
    first_block: int
    """The first block that can hold events of the contracts."""
    block: int
    """The last block that was read."""
    entries: tuple[Entry[Event], ...]
    calls: Mapping[str, bytes]
    """Call data that holds signatures and proofs, by transaction."""
    final_state: FinalState

    def until(self, block: int) -> Trail:
        """Return the trail up to an earlier block; `final_state` stays that of the last block."""
        entries = tuple(entry for entry in self.entries if entry.block <= block)
        sent = {entry.transaction for entry in entries}
        calls = {name: data for name, data in self.calls.items() if name in sent}
        return replace(self, block=block, entries=entries, calls=calls)

    def of(self, kind: type[E]) -> Iterator[Entry[E]]:
        """Yield the entries with events of one kind."""
        return entries_of(self.entries, kind)


def entries_of(entries: Iterable[Entry[Event]], kind: type[E]) -> Iterator[Entry[E]]:
    """Yield the entries with events of one kind."""
    for entry in entries:
        if isinstance(entry.event, kind):
            yield entry  # type: ignore[misc]
