"""Checks the places, stakes and statuses of members and clients in the job."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings import events
from opfl_chain.chain.bindings.types import ClientStatus, Role
from opfl_chain.chain.contracts.contract import Event
from opfl_chain.protocol.identifiers import Address
from opfl_chain.trail.history import History
from opfl_chain.trail.ledger import Ledger, Movement
from opfl_chain.trail.record import Entry
from opfl_chain.trail.report import Finding, at, now


def check_enrolment(history: History) -> Iterator[Finding]:
    terms, trail = history.terms, history.trail
    seen: set[str] = set()
    for joined in trail.of(events.MemberJoined):
        member = joined.event.member
        known = member in terms.members and member not in seen
        yield at(
            joined,
            "place of the member in the committee",
            terms.members.index(member) if known else "a member, once",
            joined.event.index,
        )
        seen.add(member)
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
    yield now("clients", len(clients), trail.final_state.progress.client_count)
    roots = {e.event.client: e.event.root for e in trail.of(events.ClientEnrolled)}
    roots |= {e.event.client: e.event.root for e in trail.of(events.DatasetRootReplaced)}
    for client, root in roots.items():
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
    ledger = Ledger()
    status: dict[str, ClientStatus] = {}
    for entry in history.trail.entries:
        event = entry.event
        if isinstance(event, Movement):
            ledger.book(event)
        if isinstance(event, events.ClientEnrolled):
            status[event.client] = ClientStatus.ACTIVE
        elif isinstance(event, events.ClientStatusChanged):
            unbonding = history.after(entry, events.UnbondingStarted)
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
        elif isinstance(event, events.UnbondingStarted) and event.role is Role.CLIENT:
            yield at(entry, "who asks leaves", ClientStatus.LEAVING, status.get(event.owner))
        elif (
            isinstance(event, events.Locked | events.Captured | events.Released)
            and event.role is Role.CLIENT
        ):
            before = status.get(event.owner)
            if before is None or before is ClientStatus.LEAVING:
                continue
            due = _by_deposit(history, ledger.stakes[Role.CLIENT, event.owner])
            found = _change_after(history, entry, event.owner) or before
            yield at(entry, f"status of the client after {entry.name}", due, found)


def _change_after(history: History, entry: Entry[Event], client: Address) -> ClientStatus | None:
    """Return the status change in the same transaction, at most two events later."""
    for step in (1, 2):
        change = history.by_place.get((entry.block, entry.log_index + step))
        if change is None or change.transaction != entry.transaction:
            return None
        if isinstance(change.event, events.ClientStatusChanged) and change.event.client == client:
            return change.event.status
    return None


def _by_deposit(history: History, deposit: int) -> ClientStatus:
    enough = deposit >= history.terms.client_deposit
    return ClientStatus.ACTIVE if enough else ClientStatus.SUSPENDED
