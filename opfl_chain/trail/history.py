"""The history of a job: its events by round, slashes and distributions, for checks and pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from opfl_chain.chain.bindings import events
from opfl_chain.chain.bindings.types import JobTerms, Phases, Schedule
from opfl_chain.chain.contracts.contract import Event
from opfl_chain.protocol.delivery import Claim
from opfl_chain.protocol.errors import VerdictError
from opfl_chain.protocol.identifiers import Address, ClientIndex, RoundNumber
from opfl_chain.protocol.randomness import is_audited
from opfl_chain.protocol.verdict import Verdict, verdict_hash
from opfl_chain.trail.record import E, Entry, Place, Trail, entries_of


@dataclass
class RoundHistory:
    """The events of one round."""

    number: RoundNumber
    phases: Phases
    audit_rate: int
    entries: list[Entry[Event]] = field(default_factory=list)

    def of(self, kind: type[E]) -> Iterator[Entry[E]]:
        return entries_of(self.entries, kind)

    def first(self, kind: type[E]) -> Entry[E] | None:
        return next(self.of(kind), None)

    @cached_property
    def opened(self) -> Entry[events.RoundOpened] | None:
        return self.first(events.RoundOpened)

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
        commit = self.opened.event.commit_deadline
        beacon = commit + self.phases.beacon
        deliver = beacon + self.phases.deliver
        attest = deliver + self.phases.attest
        return Schedule(
            commit,
            beacon,
            deliver,
            attest,
            finalise=attest + self.phases.finalise,
            request=attest + self.phases.request,
        )

    @cached_property
    def direct(self) -> dict[Address, Entry[events.GradientCommitted]]:
        """The commitments that clients sent themselves, by client."""
        return {entry.event.client: entry for entry in self.of(events.GradientCommitted)}

    @cached_property
    def batch(self) -> Entry[events.BatchCommitted] | None:
        return self.first(events.BatchCommitted)

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
        return {m: entry for m, entry in self.attested.items() if attested_hash(entry) == decided}

    @cached_property
    def verdict(self) -> Verdict | None:
        """The decided verdict; None if there is none or it cannot be decoded."""
        for entry in self.majority.values():
            return read_verdict(entry)
        return None

    def is_audited(self, client: Address) -> bool:
        """Return whether the seed selects the client; without a seed, everyone is audited."""
        if self.beacon is None:
            return True
        return is_audited(self.beacon.event.seed, client, self.audit_rate)


def attested_hash(entry: Entry[events.VerdictAttested]) -> bytes:
    return verdict_hash(entry.event.verdict.passes, entry.event.verdict.faults)


def read_verdict(entry: Entry[events.VerdictAttested]) -> Verdict | None:
    """Decode the attested verdict; None if malformed, which the contract permits."""
    try:
        return Verdict.decode(entry.event.verdict.passes, entry.event.verdict.faults)
    except VerdictError:
        return None


@dataclass(frozen=True)
class History:
    """The trail of a created job, by round."""

    trail: Trail
    created: Entry[events.JobCreated]

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

    def claims(self, round_: RoundHistory) -> list[Claim]:
        """Return the claims that are known, in the order of clients' indices.

        Of a batch the chain shows neither clients nor commitments: those that the verdict judges
        are known, and their commitments are empty here.
        """
        known = self.participants(round_) if round_.batch is not None else round_.direct
        found = [
            Claim(
                ClientIndex(self.clients[client].event.index),
                round_.number,
                round_.direct[client].event.commitment if client in round_.direct else b"",
                self.dataset_roots[client],
                round_.is_audited(client),
            )
            for client in known
            if client in self.clients
        ]
        return sorted(found, key=lambda claim: claim.client)

    def participants(self, round_: RoundHistory) -> list[Address]:
        """Return the clients that committed directly, and those that the verdict judges."""
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
    def slashes(self) -> Mapping[tuple[RoundNumber, Address], Slash]:
        """The requested slashes and their outcomes."""
        found: dict[tuple[RoundNumber, Address], Slash] = {}
        for number, round_ in self.rounds.items():
            vetoed = {entry.event.client: entry for entry in round_.of(events.SlashVetoed)}
            executed = {entry.event.client: entry for entry in round_.of(events.SlashExecuted)}
            for requested in round_.of(events.SlashRequested):
                client = requested.event.client
                slash = Slash(requested, vetoed.get(client), executed.get(client))
                found.setdefault((number, client), slash)
        return found

    @cached_property
    def distributions(self) -> tuple[Distribution, ...]:
        """All amounts taken for good, and their distribution."""
        causes: list[Entry[events.SlashExecuted] | Entry[events.MemberPenalised]] = [
            *self.trail.of(events.SlashExecuted),
            *self.trail.of(events.MemberPenalised),
        ]
        return tuple(self._distribution(cause) for cause in sorted(causes, key=lambda c: c.place))

    def _distribution(
        self, cause: Entry[events.SlashExecuted] | Entry[events.MemberPenalised]
    ) -> Distribution:
        credited: list[Entry[events.Credited]] = []
        last: Entry[Event] = cause
        while (paid := self.after(last, events.Credited)) is not None:
            credited.append(paid)
            last = paid
        return Distribution(cause, tuple(credited), self.after(last, events.Distributed))


@dataclass(frozen=True)
class Slash:
    """A slash, from the request to its end."""

    requested: Entry[events.SlashRequested]
    vetoed: Entry[events.SlashVetoed] | None
    executed: Entry[events.SlashExecuted] | None

    @property
    def pending(self) -> bool:
        return self.vetoed is None and self.executed is None


@dataclass(frozen=True)
class Distribution:
    """An amount taken for good: the event that took it, and the logs right after it."""

    cause: Entry[events.SlashExecuted] | Entry[events.MemberPenalised]
    credited: tuple[Entry[events.Credited], ...]
    distributed: Entry[events.Distributed] | None

    @property
    def payer(self) -> Address | None:
        """The penalised member, who gets no part of the distribution."""
        event = self.cause.event
        return event.member if isinstance(event, events.MemberPenalised) else None
