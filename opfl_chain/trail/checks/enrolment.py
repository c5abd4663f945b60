"""Checks the places, stakes and statuses of members and clients in the job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from opfl_chain.chain.bindings import events
from opfl_chain.chain.bindings.types import ClientStatus, Role
from opfl_chain.chain.contracts.contract import Event
from opfl_chain.protocol.identifiers import Address
from opfl_chain.trail.history import Ending, History
from opfl_chain.trail.ledger import Ledger, Movement
from opfl_chain.trail.record import Entry
from opfl_chain.trail.report import END, Finding, at, now

SEALING_KEY_BYTES: Final = 33
_MOST_STEPS: Final = 3
"""Events between the cause of a status change and the change: a charge is distributed first."""


def check_enrolment(history: History) -> Iterator[Finding]:
    terms, trail = history.terms, history.trail
    seen: set[str] = set()
    for joined in trail.of(events.MemberJoined):
        member = joined.event.member
        known = member in history.roster and member not in seen
        yield at(
            joined,
            "number of the member on the roster",
            history.roster.index(member) if known else "a member or standby, once",
            joined.event.number,
        )
        seen.add(member)
        size = len(joined.event.sealing_key)
        yield at(joined, "bytes of the sealing key", SEALING_KEY_BYTES, size)
        yield _locked(history, joined, Role.MEMBER, member, terms.member_stake)

    clients: set[str] = set()
    for index, enrolled in enumerate(trail.of(events.ClientEnrolled)):
        client = enrolled.event.client
        yield at(enrolled, "index of the client", index, enrolled.event.index)
        yield at(enrolled, "the client enrols once", False, client in clients)
        yield _recorded(enrolled, enrolled.event.root)
        clients.add(client)
        yield _locked(history, enrolled, Role.CLIENT, client, terms.client_deposit)
    for replaced in trail.of(events.DatasetRootReplaced):
        yield at(replaced, "the data set is a client's", True, replaced.event.client in clients)
        yield _recorded(replaced, replaced.event.root)
    yield at(
        history.created,
        "clients",
        f"at most {terms.max_clients}",
        len(clients),
        holds=len(clients) <= terms.max_clients,
    )
    yield now("clients", len(clients), trail.final_state.participants.client_count)
    for client, root in history.dataset_roots.items():
        found = trail.final_state.clients.get(client)
        yield now("root of the data set", root, found and found.dataset_root, who=client)


def _recorded(entry: Entry[Event], root: bytes) -> Finding:
    return at(entry, "root of the data set", "32 bytes, not all zero", root, holds=any(root))


def _locked(history: History, entry: Entry[Event], role: Role, owner: str, least: int) -> Finding:
    locked = history.after(entry, events.Locked)
    return at(
        entry,
        "stake that is locked with it, in wei",
        f"at least {least}",
        locked.event.amount if locked is not None else None,
        holds=locked is not None
        and (locked.event.role, locked.event.owner) == (role, owner)
        and locked.event.amount >= least,
    )


def check_status(history: History) -> Iterator[Finding]:
    """Check that clients are active just while they have their deposit and no undecided audit."""
    ledger = Ledger()
    status: dict[str, ClientStatus] = {}
    undecided: dict[str, int] = defaultdict(int)

    def due_for(client: Address) -> ClientStatus:
        enough = ledger.stakes[Role.CLIENT, client] >= history.terms.client_deposit
        fit = enough and not undecided[client]
        return ClientStatus.ACTIVE if fit else ClientStatus.SUSPENDED

    for entry in history.trail.entries:
        event = entry.event
        client: Address | None = None
        if isinstance(event, Movement):
            ledger.book(event)
        if isinstance(event, events.ClientEnrolled):
            status[event.client] = ClientStatus.ACTIVE
        elif isinstance(event, events.ClientStatusChanged):
            unbonding = history.after(entry, events.UnbondingStarted)
            if unbonding is not None and unbonding.event.owner == event.client:
                due = ClientStatus.LEAVING
            else:
                due = due_for(event.client)
            yield at(entry, "status of the client", due, event.status)
            yield at(
                entry,
                "status of the client changes",
                "another than before",
                event.status,
                holds=status.get(event.client) not in (event.status, ClientStatus.LEAVING),
            )
            status[event.client] = event.status
        elif isinstance(event, events.UnbondingStarted) and event.role is Role.CLIENT:
            yield at(entry, "who asks leaves", ClientStatus.LEAVING, status.get(event.owner))
        elif isinstance(event, events.AuditHeld):
            undecided[event.client] += 1
            client = event.client
        elif isinstance(event, Ending):
            undecided[event.client] -= 1
            # What goes back is booked with the next event.
            client = event.client if isinstance(event, events.ClientCharged) else None
        elif isinstance(event, events.Locked | events.Released) and event.role is Role.CLIENT:
            client = event.owner
        before = status.get(client or "")
        if client is not None and before not in (None, ClientStatus.LEAVING):
            found = _change_after(history, entry, client) or before
            yield at(entry, f"status of the client after {entry.name}", due_for(client), found)
    yield from _undecided(history, undecided)


def _undecided(history: History, undecided: Mapping[Address, int]) -> Iterator[Finding]:
    """Compare the numbers of undecided audits, and the statuses, with those of the contract."""
    state = history.trail.final_state
    total = sum(undecided.values())
    yield now("audits that are undecided", total, state.participants.undecided)
    active = history.active_at(END)
    for client, found in state.clients.items():
        open_audits = undecided.get(client, 0)
        yield now("undecided audits of the client", open_audits, found.undecided, who=client)
        is_active = found.status is ClientStatus.ACTIVE
        yield now("whether the client is active", client in active, is_active, who=client)


def _change_after(history: History, entry: Entry[Event], client: Address) -> ClientStatus | None:
    """Return the status change in the same transaction, before the next of its causes."""
    for step in range(1, _MOST_STEPS + 1):
        change = history.by_place.get((entry.block, entry.log_index + step))
        if change is None or change.transaction != entry.transaction:
            return None
        if isinstance(change.event, events.ClientStatusChanged) and change.event.client == client:
            return change.event.status
    return None
