"""The history of a job: its events by round, with seats, audits and distributions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from pydantic_core import from_json

from opfl_chain.chain.bindings import events
from opfl_chain.chain.bindings.types import ClientStatus, JobTerms, Schedule
from opfl_chain.chain.contracts.contract import Event
from opfl_chain.chain.terms import schedule_of
from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.identifiers import Address, ClientIndex, RoundNumber
from opfl_chain.protocol.randomness import is_audited
from opfl_chain.protocol.roll import PAIR_BYTES
from opfl_chain.protocol.verdict import passed_clients, verdict_hash
from opfl_chain.trail.record import E, Entry, Place, Trail, entries_of

Ending = events.ClientCharged | events.ClientAcquitted | events.AuditUnlocked


@dataclass
class RoundHistory:
    """The events of one round."""

    number: RoundNumber
    terms: JobTerms
    seats: tuple[Address, ...]
    """The members that had the seats when the round opened."""
    entries: list[Entry[Event]]

    def of(self, kind: type[E]) -> Iterator[Entry[E]]:
        return entries_of(self.entries, kind)

    def first(self, kind: type[E]) -> Entry[E] | None:
        return next(self.of(kind), None)

    @cached_property
    def opened(self) -> Entry[events.RoundOpened] | None:
        return self.first(events.RoundOpened)

    @cached_property
    def roll(self) -> Entry[events.RollCommitted] | None:
        return self.first(events.RollCommitted)

    @cached_property
    def beacon(self) -> Entry[events.BeaconPublished] | None:
        return self.first(events.BeaconPublished)

    @cached_property
    def decided(self) -> Entry[events.VerdictDecided] | None:
        return self.first(events.VerdictDecided)

    @cached_property
    def finalised(self) -> Entry[events.RoundFinalised] | None:
        return self.first(events.RoundFinalised)

    @cached_property
    def voided(self) -> Entry[events.RoundVoided] | None:
        return self.first(events.RoundVoided)

    @cached_property
    def over(self) -> Entry[events.RoundFinalised] | Entry[events.RoundVoided] | None:
        """The event that ended the round."""
        return self.finalised or self.voided

    @cached_property
    def schedule(self) -> Schedule | None:
        """The last block of every phase, computed from the opening of the round."""
        if self.opened is None:
            return None
        return schedule_of(self.terms.phases, self.opened.block)

    @cached_property
    def pairs(self) -> tuple[tuple[ClientIndex, bytes], ...] | None:
        """Index and commitment of every contribution; None if the chain does not list them."""
        if self.roll is None or not self.terms.public_roll:
            return None
        data = self.roll.event.pairs
        rows = (data[at : at + PAIR_BYTES] for at in range(0, len(data), PAIR_BYTES))
        return tuple((ClientIndex(int.from_bytes(row[:4], "big")), row[4:]) for row in rows)

    @cached_property
    def partials(self) -> dict[Address, Entry[events.PartialPublished]]:
        return {entry.event.member: entry for entry in self.of(events.PartialPublished)}

    @cached_property
    def attested(self) -> dict[Address, Entry[events.VerdictAttested]]:
        return {entry.event.member: entry for entry in self.of(events.VerdictAttested)}

    @cached_property
    def majority(self) -> dict[Address, Entry[events.VerdictAttested]]:
        """The members that attested the decided verdict."""
        if self.decided is None:
            return {}
        decided = self.decided.event.verdict_hash
        return {
            member: entry
            for member, entry in self.attested.items()
            if verdict_hash(entry.event.passes) == decided
        }

    @cached_property
    def passed(self) -> Set[ClientIndex] | None:
        """The clients that passed, by the decided verdict; None if there is none."""
        for entry in self.majority.values():
            return passed_clients(entry.event.passes)
        return None

    def is_audited(self, client: Address) -> bool:
        """Return whether the seed selects the client; without a seed, everyone is audited."""
        if self.beacon is None:
            return True
        return is_audited(self.beacon.event.seed, client, self.terms.audit_rate)


@dataclass(frozen=True)
class History:
    """The trail of a created job, by round."""

    trail: Trail
    created: Entry[events.JobCreated]

    @property
    def terms(self) -> JobTerms:
        return self.created.event.terms

    @property
    def roster(self) -> tuple[Address, ...]:
        """Members, then standbys."""
        return (*self.terms.members, *self.terms.standbys)

    @cached_property
    def opens_in_mpc(self) -> bool:
        """True if gradients open inside MPC alone, so that some fail to after the roll."""
        try:
            policy = from_json(self.created.event.policy)
        except ValueError:
            return False
        return isinstance(policy, dict) and policy.get("commitment_scheme") == Scheme.MPC.value

    def named(self, numbers: Sequence[int]) -> tuple[Address | int, ...]:
        """Return the accounts with these numbers; a number that nobody has stays as it is."""
        size = len(self.roster)
        return tuple(self.roster[number] if number < size else number for number in numbers)

    @cached_property
    def rounds(self) -> Mapping[RoundNumber, RoundHistory]:
        found: dict[RoundNumber, list[Entry[Event]]] = defaultdict(list)
        for entry in self.trail.entries:
            if (number := entry.round) is not None:
                found[number].append(entry)
        return {number: self._round(number, entries) for number, entries in sorted(found.items())}

    def _round(self, number: RoundNumber, entries: list[Entry[Event]]) -> RoundHistory:
        opened = next(entries_of(entries, events.RoundOpened), entries[0])
        return RoundHistory(number, self.terms, self.seats_at(opened.place), entries)

    @cached_property
    def seat_changes(self) -> tuple[Entry[events.SeatChanged], ...]:
        return tuple(self.trail.of(events.SeatChanged))

    def seats_at(self, place: Place) -> tuple[Address, ...]:
        """Return who has the seats at a place in the chain."""
        seats = list(self.terms.members)
        for change in self.seat_changes:
            if change.place < place and change.event.seat < len(seats):
                seats[change.event.seat] = change.event.to
        return tuple(seats)

    def epoch_at(self, place: Place) -> int:
        """Return the number of seat changes before a place in the chain."""
        return sum(change.place < place for change in self.seat_changes)

    @cached_property
    def joined(self) -> Mapping[Address, Entry[events.MemberJoined]]:
        return {entry.event.member: entry for entry in self.trail.of(events.MemberJoined)}

    def has_joined(self, member: Address, place: Place) -> bool:
        """Return whether an account of the roster had staked before a place in the chain."""
        entry = self.joined.get(member)
        return member in self.roster and entry is not None and entry.place < place

    @cached_property
    def clients(self) -> Mapping[Address, Entry[events.ClientEnrolled]]:
        return {entry.event.client: entry for entry in self.trail.of(events.ClientEnrolled)}

    @cached_property
    def client_at(self) -> Mapping[ClientIndex, Address]:
        """The clients by their bit in verdicts."""
        return {ClientIndex(e.event.index): client for client, e in self.clients.items()}

    @cached_property
    def dataset_roots(self) -> Mapping[Address, bytes]:
        """The roots of the clients' data sets, which are fixed when the first round opens."""
        roots = {client: entry.event.root for client, entry in self.clients.items()}
        return roots | {
            entry.event.client: entry.event.root
            for entry in self.trail.of(events.DatasetRootReplaced)
        }

    @cached_property
    def _statuses(self) -> tuple[tuple[Place, Address, ClientStatus], ...]:
        """All statuses of clients, in the order of the chain."""
        enrolled = (
            (entry.place, entry.event.client, ClientStatus.ACTIVE)
            for entry in self.trail.of(events.ClientEnrolled)
        )
        changed = (
            (entry.place, entry.event.client, entry.event.status)
            for entry in self.trail.of(events.ClientStatusChanged)
        )
        return tuple(sorted((*enrolled, *changed), key=lambda each: each[0]))

    def active_at(self, place: Place) -> frozenset[Address]:
        """Return the clients that might contribute at a place in the chain."""
        last = {client: status for at, client, status in self._statuses if at < place}
        return frozenset(who for who, status in last.items() if status is ClientStatus.ACTIVE)

    def eligible(self, round_: RoundHistory) -> frozenset[Address]:
        """Return the clients that were active at the end of the block in which it opened."""
        return self.active_at((round_.opened.block + 1, -1)) if round_.opened else frozenset()

    def contributors(self, round_: RoundHistory) -> list[Address]:
        """Return the known clients on the roll: without pairs, those who passed or are held."""
        if round_.pairs is not None:
            known = {index for index, _ in round_.pairs}
        else:
            known = set(round_.passed or ())
        held = {entry.event.client for entry in round_.of(events.AuditHeld)}
        return [
            client
            for client, enrolled in self.clients.items()
            if enrolled.event.index in known or (round_.pairs is None and client in held)
        ]

    @cached_property
    def keys(self) -> Mapping[Address, Entry[events.KeyRegistered]]:
        return {entry.event.member: entry for entry in self.trail.of(events.KeyRegistered)}

    @cached_property
    def by_place(self) -> Mapping[Place, Entry[Event]]:
        return {entry.place: entry for entry in self.trail.entries}

    def after(self, entry: Entry[Event], kind: type[E]) -> Entry[E] | None:
        """Return the next log if it is of this kind and in the same transaction."""
        return self._neighbour(entry, kind, 1)

    def before(self, entry: Entry[Event], kind: type[E]) -> Entry[E] | None:
        """Return the previous log if it is of this kind and in the same transaction."""
        return self._neighbour(entry, kind, -1)

    def _neighbour(self, entry: Entry[Event], kind: type[E], step: int) -> Entry[E] | None:
        found = self.by_place.get((entry.block, entry.log_index + step))
        if found is None or found.transaction != entry.transaction:
            return None
        return found if isinstance(found.event, kind) else None  # type: ignore[return-value]

    @cached_property
    def audits(self) -> Mapping[tuple[RoundNumber, Address], Audit]:
        """The audits that are or were held, and how they ended."""
        found: dict[tuple[RoundNumber, Address], Audit] = {}
        for number, round_ in self.rounds.items():
            ended: dict[Address, Entry[Ending]] = {}
            for entry in round_.entries:
                if isinstance(entry.event, Ending):
                    ended.setdefault(entry.event.client, entry)  # type: ignore[arg-type]
            for held in round_.of(events.AuditHeld):
                client = held.event.client
                found.setdefault((number, client), Audit(held, ended.get(client)))
        return found

    @cached_property
    def distributions(self) -> tuple[Distribution, ...]:
        """All amounts taken for good, and their distribution."""
        causes: list[Entry[events.ClientCharged] | Entry[events.MemberPenalised]] = [
            *self.trail.of(events.ClientCharged),
            *self.trail.of(events.MemberPenalised),
        ]
        return tuple(self._distribution(cause) for cause in sorted(causes, key=lambda c: c.place))

    def _distribution(
        self, cause: Entry[events.ClientCharged] | Entry[events.MemberPenalised]
    ) -> Distribution:
        credited: list[Entry[events.Credited]] = []
        last: Entry[Event] = cause
        while (paid := self.after(last, events.Credited)) is not None:
            credited.append(paid)
            last = paid
        return Distribution(cause, tuple(credited), self.after(last, events.Distributed))


@dataclass(frozen=True)
class Audit:
    """An audit that did not pass in its round, from the hold to its end."""

    held: Entry[events.AuditHeld]
    ended: Entry[Ending] | None


@dataclass(frozen=True)
class Distribution:
    """An amount taken for good: the event that took it, and the logs right after it."""

    cause: Entry[events.ClientCharged] | Entry[events.MemberPenalised]
    credited: tuple[Entry[events.Credited], ...]
    distributed: Entry[events.Distributed] | None

    @property
    def payer(self) -> Address | None:
        """The penalised member, who is not compensated."""
        event = self.cause.event
        return event.member if isinstance(event, events.MemberPenalised) else None
