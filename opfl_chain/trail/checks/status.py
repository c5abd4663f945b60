"""Whether a client may commit follows from its deposit, and from whether it asked for it."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings.events import (
    Captured,
    ClientEnrolled,
    ClientStatusChanged,
    Locked,
    Released,
    UnbondingStarted,
)
from opfl_chain.chain.bindings.types import ClientStatus, Role
from opfl_chain.chain.contract import Event
from opfl_chain.protocol.identifiers import Address
from opfl_chain.trail.history import History
from opfl_chain.trail.ledger import Ledger, Movement
from opfl_chain.trail.record import Entry
from opfl_chain.trail.report import Finding, at


def check(history: History) -> Iterator[Finding]:
    ledger = Ledger()
    status: dict[str, ClientStatus] = {}
    for entry in history.trail.entries:
        event = entry.event
        if isinstance(event, Movement):
            ledger.book(event)
        if isinstance(event, ClientEnrolled):
            status[event.client] = ClientStatus.ACTIVE
        elif isinstance(event, ClientStatusChanged):
            unbonding = history.after(entry, UnbondingStarted)
            if unbonding is not None and unbonding.event.owner == event.client:
                due = ClientStatus.LEAVING
            else:
                due = _by_deposit(history, ledger.stakes[Role.CLIENT, event.client])
            yield at(entry, "status of the client", due, event.status)
            yield at(
                entry,
                "status of the client changes",
                "another than before",
                event.status,
                holds=status.get(event.client) not in (event.status, ClientStatus.LEAVING),
            )
            status[event.client] = event.status
        elif isinstance(event, UnbondingStarted) and event.role is Role.CLIENT:
            yield at(entry, "who asks leaves", ClientStatus.LEAVING, status.get(event.owner))
        elif isinstance(event, Locked | Captured | Released) and event.role is Role.CLIENT:
            before = status.get(event.owner)
            if before is None or before is ClientStatus.LEAVING:
                continue
            due = _by_deposit(history, ledger.stakes[Role.CLIENT, event.owner])
            found = _change_after(history, entry, event.owner) or before
            yield at(entry, f"status of the client after {entry.name}", due, found)


def _change_after(history: History, entry: Entry[Event], client: Address) -> ClientStatus | None:
    """The change that follows in the transaction: at once, or after one other event."""
    for step in (1, 2):
        change = history.by_place.get((entry.block, entry.log_index + step))
        if change is None or change.transaction != entry.transaction:
            return None
        if isinstance(change.event, ClientStatusChanged) and change.event.client == client:
            return change.event.status
    return None


def _by_deposit(history: History, deposit: int) -> ClientStatus:
    enough = deposit >= history.terms.client_deposit
    return ClientStatus.ACTIVE if enough else ClientStatus.SUSPENDED
