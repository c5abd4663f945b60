"""The events of a trail by round and kind, for checks and pages to look things up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from opfl_chain.chain.bindings.events import (
    ClientEnrolled,
    Credited,
    Distributed,
    JobCreated,
    KeyRegistered,
    MemberPenalised,
    SlashExecuted,
    SlashRequested,
    SlashVetoed,
)
from opfl_chain.chain.bindings.types import JobTerms
from opfl_chain.chain.contract import Event
from opfl_chain.protocol.identifiers import Address, ClientIndex, RoundNumber
from opfl_chain.trail.record import E, Entry, Place, Trail
from opfl_chain.trail.round_history import RoundHistory


@dataclass(frozen=True)
class History:
    """A trail whose job was created, by round."""

    trail: Trail
    created: Entry[JobCreated]

    @property
    def terms(self) -> JobTerms:
        return self.created.event.terms

    @cached_property
    def rounds(self) -> Mapping[RoundNumber, RoundHistory]:
        rounds: dict[RoundNumber, RoundHistory] = {}
        for entry in self.trail.entries:
            if (number := entry.round) is not None:
                new = RoundHistory(number, self.terms.phases, self.terms.audit_rate)
                rounds.setdefault(number, new).entries.append(entry)
        return dict(sorted(rounds.items()))

    @cached_property
    def clients(self) -> Mapping[Address, Entry[ClientEnrolled]]:
        return {entry.event.client: entry for entry in self.trail.of(ClientEnrolled)}

    @cached_property
    def client_at(self) -> Mapping[ClientIndex, Address]:
        """Who a bit in verdicts stands for."""
        return {ClientIndex(e.event.index): client for client, e in self.clients.items()}

    def participants(self, round_: RoundHistory) -> list[Address]:
        """Clients that committed directly, and those of a batch that the verdict is about."""
        judged: set[int] = set()
        if round_.verdict is not None:
            judged = {fault.client for fault in round_.verdict.faults}
            judged |= {e.event.index for e in self.clients.values()} & round_.verdict.passed
        return [
            client
            for client, enrolled in self.clients.items()
            if client in round_.direct or enrolled.event.index in judged
        ]

    @cached_property
    def keys(self) -> Mapping[Address, Entry[KeyRegistered]]:
        return {entry.event.member: entry for entry in self.trail.of(KeyRegistered)}

    @cached_property
    def by_place(self) -> Mapping[Place, Entry[Event]]:
        return {entry.place: entry for entry in self.trail.entries}

    def after(self, entry: Entry[Event], kind: type[E]) -> Entry[E] | None:
        """The very next log, if it is of this kind and of the same transaction."""
        return self._neighbour(entry, kind, 1)

    def before(self, entry: Entry[Event], kind: type[E]) -> Entry[E] | None:
        """The log just before, if it is of this kind and of the same transaction."""
        return self._neighbour(entry, kind, -1)

    def _neighbour(self, entry: Entry[Event], kind: type[E], step: int) -> Entry[E] | None:
        found = self.by_place.get((entry.block, entry.log_index + step))
        if found is None or found.transaction != entry.transaction:
            return None
        return found if isinstance(found.event, kind) else None  # type: ignore[return-value]

    @cached_property
    def slashes(self) -> Mapping[tuple[RoundNumber, Address], Slash]:
        """What became of every requested slash."""
        found: dict[tuple[RoundNumber, Address], Slash] = {}
        for number, round_ in self.rounds.items():
            vetoed = {entry.event.client: entry for entry in round_.of(SlashVetoed)}
            executed = {entry.event.client: entry for entry in round_.of(SlashExecuted)}
            for requested in round_.of(SlashRequested):
                client = requested.event.client
                slash = Slash(requested, vetoed.get(client), executed.get(client))
                found.setdefault((number, client), slash)
        return found

    @cached_property
    def distributions(self) -> tuple[Distribution, ...]:
        """What was taken, and where it went."""
        causes: list[Entry[SlashExecuted] | Entry[MemberPenalised]] = [
            *self.trail.of(SlashExecuted),
            *self.trail.of(MemberPenalised),
        ]
        return tuple(self._distribution(cause) for cause in sorted(causes, key=lambda c: c.place))

    def _distribution(self, cause: Entry[SlashExecuted] | Entry[MemberPenalised]) -> Distribution:
        credited: list[Entry[Credited]] = []
        last: Entry[Event] = cause
        while (paid := self.after(last, Credited)) is not None:
            credited.append(paid)
            last = paid
        return Distribution(cause, tuple(credited), self.after(last, Distributed))


@dataclass(frozen=True)
class Slash:
    """A slash, from the request to its end."""

    requested: Entry[SlashRequested]
    vetoed: Entry[SlashVetoed] | None
    executed: Entry[SlashExecuted] | None

    @property
    def pending(self) -> bool:
        return self.vetoed is None and self.executed is None


@dataclass(frozen=True)
class Distribution:
    """Money that was taken for good: the event that took it, and the logs right after it."""

    cause: Entry[SlashExecuted] | Entry[MemberPenalised]
    credited: tuple[Entry[Credited], ...]
    distributed: Entry[Distributed] | None

    @property
    def payer(self) -> Address | None:
        """The member who pays and is therefore not paid."""
        event = self.cause.event
        return event.member if isinstance(event, MemberPenalised) else None
