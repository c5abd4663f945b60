"""Members and clients have the places that the job gives them, and locked what it asks for."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings.events import (
    ClientEnrolled,
    DatasetRootReplaced,
    Locked,
    MemberJoined,
)
from opfl_chain.chain.bindings.types import Role
from opfl_chain.chain.contract import Event
from opfl_chain.trail.history import History
from opfl_chain.trail.record import Entry
from opfl_chain.trail.report import Finding, at, now


def check(history: History) -> Iterator[Finding]:
    terms, trail = history.terms, history.trail
    seen: set[str] = set()
    for joined in trail.of(MemberJoined):
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
    for index, enrolled in enumerate(trail.of(ClientEnrolled)):
        client = enrolled.event.client
        yield at(enrolled, "index of the client", index, enrolled.event.index)
        yield at(enrolled, "the client enrols once", False, client in clients)
        yield _recorded(enrolled, enrolled.event.root)
        clients.add(client)
        yield _locked(history, enrolled, Role.CLIENT, client, terms.client_deposit)
    for replaced in trail.of(DatasetRootReplaced):
        yield at(replaced, "the data set is a client's", True, replaced.event.client in clients)
        yield _recorded(replaced, replaced.event.root)
    yield now("clients", len(clients), trail.standing.progress.client_count)
    roots = {e.event.client: e.event.root for e in trail.of(ClientEnrolled)}
    roots |= {e.event.client: e.event.root for e in trail.of(DatasetRootReplaced)}
    for client, root in roots.items():
        found = trail.standing.clients.get(client)
        yield now("root of the data set", root, found and found.dataset_root, who=client)


def _recorded(entry: Entry[Event], root: bytes) -> Finding:
    return at(entry, "root of the data set", "32 bytes, not all zero", root, holds=any(root))


def _locked(history: History, entry: Entry[Event], role: Role, owner: str, least: int) -> Finding:
    locked = history.after(entry, Locked)
    return at(
        entry,
        "stake that is locked with it, in wei",
        f"at least {least}",
        locked.event.amount if locked is not None else None,
        holds=locked is not None
        and (locked.event.role, locked.event.owner) == (role, owner)
        and locked.event.amount >= least,
    )
