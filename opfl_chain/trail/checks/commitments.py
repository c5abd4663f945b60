"""Only clients that may commit do, once a round, and the chain's accumulator is made of it."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings.events import (
    BatchCommitted,
    ClientEnrolled,
    ClientStatusChanged,
    GradientCommitted,
)
from opfl_chain.chain.bindings.types import ClientStatus
from opfl_chain.protocol.identifiers import RoundNumber
from opfl_chain.trail.history import History
from opfl_chain.trail.report import Finding, at


def check(history: History) -> Iterator[Finding]:
    status: dict[str, ClientStatus] = {}
    committed: set[tuple[RoundNumber | None, str]] = set()
    for entry in history.trail.entries:
        event = entry.event
        if isinstance(event, ClientEnrolled):
            status[event.client] = ClientStatus.ACTIVE
        elif isinstance(event, ClientStatusChanged):
            status[event.client] = event.status
        elif isinstance(event, GradientCommitted):
            may = status.get(event.client, ClientStatus.UNKNOWN)
            yield at(entry, "status of the client that commits", ClientStatus.ACTIVE, may)
            before = (entry.round, event.client) in committed
            yield at(entry, "the client committed before in this round", False, before)
            yield at(entry, "the commitment is empty", False, not any(event.commitment))
            committed.add((entry.round, event.client))
        elif isinstance(event, BatchCommitted):
            yield at(entry, "the root of the batch is empty", False, not any(event.root))
