"""The record of a job: its events, their call data, and the final state of the contracts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from eth_abi.exceptions import DecodingError

from opfl_chain.chain.abi import decode, selector
from opfl_chain.chain.bindings.types import (
    Account,
    Charge,
    Client,
    JobTerms,
    Participants,
    Progress,
    Role,
    Round,
)
from opfl_chain.chain.contracts.contract import Event
from opfl_chain.protocol.identifiers import Address, JobId, RoundId, RoundNumber, job_and_number

E = TypeVar("E", bound=Event)
E_co = TypeVar("E_co", bound=Event, covariant=True)
Place = tuple[int, int]
"""Block number and log index: the order of the chain."""
# The fields in which events name the account that they are about.
_WHO = ("client", "member", "owner", "account", "recipient", "to", "creator")


@dataclass(frozen=True)
class CallKind:
    """A function of a contract whose arguments say more than the event that it leads to."""

    function: str
    types: tuple[str, ...]

    @property
    def selector(self) -> bytes:
        return selector(f"{self.function}({','.join(self.types)})")


_TWO_SIGNATURES: Final = "bytes[2]"
REGISTER_KEY: Final = CallKind("registerKey", ("bytes", "bytes"))
JOIN_COMMITTEE: Final = CallKind("joinCommittee", ("uint64", "bytes"))
CHANGE_SEAT: Final = CallKind("changeSeat", ("uint64", "uint8", "address", _TWO_SIGNATURES))
COMMIT_ROLL: Final = CallKind(
    "commitRoll", ("uint96", "bytes32", "uint32", "bytes", _TWO_SIGNATURES)
)
FINALISE: Final = CallKind("finalise", ("uint96", "bytes32", "bytes32", _TWO_SIGNATURES))
HOLD: Final = CallKind("hold", ("uint96", "address", "bytes", "(bytes32,bytes32,bytes32[],bytes)"))
CHARGE: Final = CallKind("charge", ("uint96", "address", "uint8", _TWO_SIGNATURES))
ACQUIT: Final = CallKind("acquit", ("uint96", "address", _TWO_SIGNATURES))
PENALISE: Final = CallKind("penalise", ("uint96", "address", "uint8"))
PENALISE_CERTIFIED: Final = CallKind(
    "penaliseCertified", ("uint96", "address", "uint8", _TWO_SIGNATURES)
)
PENALISE_EQUIVOCATION: Final = CallKind(
    "penaliseEquivocation", ("uint96", "address", "uint32", "bytes32[2]", _TWO_SIGNATURES)
)
CLAIM_CONTRIBUTIONS: Final = CallKind("claimContributions", ("address", "uint96[]", "bytes[]"))
CLAIM_SERVICE: Final = CallKind("claimService", ("address", "uint96[]"))


def decode_call(data: bytes | None, kind: CallKind) -> tuple[Any, ...] | None:
    """Decode the arguments of a call if it is of this kind."""
    if data is None or data[:4] != kind.selector:
        return None
    try:
        return tuple(decode(kind.types, data[4:]))
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
    participants: Participants
    progress: Progress
    job_count: int
    burned: int
    held: int
    """The balance of the contract Deposits in wei."""
    budget: int
    earned: int
    paid: int
    stakes: Mapping[tuple[Role, Address], Account]
    credits: Mapping[Address, int]
    seeds: Mapping[RoundNumber, bytes]
    """Zero for a round without a beacon."""
    withheld: Mapping[RoundNumber, frozenset[Address]]
    """Members whose parts are missing, for rounds without a beacon."""
    rounds: Mapping[RoundNumber, Round]
    clients: Mapping[Address, Client]
    charges: Mapping[tuple[RoundNumber, Address], Charge]


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
    """Call data of transactions that say more than their events, as signatures, by hash."""
    parents: Mapping[int, str]
    """The hashes of the blocks before those in which rounds opened, by the number of the latter."""
    final_state: FinalState

    def until(self, block: int) -> Trail:
        """Return the trail up to an earlier block; `final_state` stays that of the last block."""
        entries = tuple(entry for entry in self.entries if entry.block <= block)
        sent = {entry.transaction for entry in entries}
        calls = {name: data for name, data in self.calls.items() if name in sent}
        parents = {number: parent for number, parent in self.parents.items() if number <= block}
        return replace(self, block=block, entries=entries, calls=calls, parents=parents)

    def of(self, kind: type[E]) -> Iterator[Entry[E]]:
        """Yield the entries with events of one kind."""
        return entries_of(self.entries, kind)


def entries_of(entries: Iterable[Entry[Event]], kind: type[E]) -> Iterator[Entry[E]]:
    """Yield the entries with events of one kind."""
    for entry in entries:
        if isinstance(entry.event, kind):
            yield entry  # type: ignore[misc]
