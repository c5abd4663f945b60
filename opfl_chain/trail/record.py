"""What is known of a job: its events in the chain's order, some calls, and how things stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from opfl_chain.chain.bindings.types import Account, Client, JobProgress, JobTerms, Role, Round
from opfl_chain.chain.contract import Event
from opfl_chain.protocol.identifiers import (
    Address,
    JobId,
    RoundId,
    RoundNumber,
    job_and_number,
)

E = TypeVar("E", bound=Event)
E_co = TypeVar("E_co", bound=Event, covariant=True)

Place = tuple[int, int]
"""Block and index of the log in it: the order of the chain."""

# What events call the account that they are about.
_WHO = ("client", "member", "owner", "account")


@dataclass(frozen=True)
class Entry(Generic[E_co]):
    """One event, and where the chain has it."""

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
class Standing:
    """What the contracts answer at the trail's last block."""

    terms: JobTerms
    progress: JobProgress
    job_count: int
    burned: int
    held: int
    """The wei that the contract Deposits has."""
    stakes: Mapping[tuple[Role, Address], Account]
    credits: Mapping[Address, int]
    accumulators: Mapping[RoundNumber, bytes]
    seeds: Mapping[RoundNumber, bytes]
    """Zero where there is no beacon."""
    withheld: Mapping[RoundNumber, frozenset[Address]]
    """Members whose parts are missing, where the beacon is."""
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
    """The first that can hold events of the contracts."""
    block: int
    """The last block that was read."""
    entries: tuple[Entry[Event], ...]
    calls: Mapping[str, bytes]
    """What was sent to a contract, by transaction, where signatures and proofs stand in it."""
    standing: Standing

    def until(self, block: int) -> Trail:
        """The trail as it was read at an earlier block, except for how things stand."""
        entries = tuple(entry for entry in self.entries if entry.block <= block)
        sent = {entry.transaction for entry in entries}
        calls = {name: data for name, data in self.calls.items() if name in sent}
        return replace(self, block=block, entries=entries, calls=calls)

    def of(self, kind: type[E]) -> Iterator[Entry[E]]:
        """The entries with events of one kind."""
        for entry in self.entries:
            if isinstance(entry.event, kind):
                yield entry  # type: ignore[misc]
