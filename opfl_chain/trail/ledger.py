"""The balances of all stakes of a job, recomputed from deposits and withdrawals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from opfl_chain.chain.bindings.events import Captured, Locked, Released, Withdrawn
from opfl_chain.chain.bindings.types import Role
from opfl_chain.chain.contracts.contract import Event
from opfl_chain.protocol.identifiers import Address
from opfl_chain.trail.history import History
from opfl_chain.trail.record import Entry

Owner = tuple[Role, Address]
Movement = Locked | Captured | Released | Withdrawn


@dataclass
class Ledger:
    """Sums in wei up to an event."""

    stakes: dict[Owner, int] = field(default_factory=lambda: defaultdict(int))
    locked: dict[Owner, int] = field(default_factory=lambda: defaultdict(int))
    withdrawn: dict[Owner, int] = field(default_factory=lambda: defaultdict(int))

    def book(self, event: Movement) -> None:
        owner = (event.role, event.owner)
        if isinstance(event, Locked):
            self.stakes[owner] += event.amount
            self.locked[owner] += event.amount
        elif isinstance(event, Captured):
            self.stakes[owner] -= event.amount
        elif isinstance(event, Released):
            self.stakes[owner] += event.amount
        else:
            self.stakes[owner] -= event.amount
            self.withdrawn[owner] += event.amount


def movements(history: History) -> Iterator[tuple[Entry[Event], Movement, Ledger]]:
    """Yield every movement with the ledger before it; the movement is booked afterwards."""
    ledger = Ledger()
    for entry in history.trail.entries:
        if isinstance(entry.event, Movement):
            yield entry, entry.event, ledger
            ledger.book(entry.event)


def final_ledger(history: History) -> Ledger:
    ledger = Ledger()
    for entry in history.trail.entries:
        if isinstance(entry.event, Movement):
            ledger.book(entry.event)
    return ledger
