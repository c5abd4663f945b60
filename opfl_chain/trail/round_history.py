"""The events of one round, for checks and pages to look things up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from opfl_chain.chain.bindings.events import (
    BatchCommitted,
    BeaconPublished,
    GradientCommitted,
    PartialPublished,
    RoundFinalised,
    RoundOpened,
    RoundVoided,
    VerdictAttested,
    VerdictDecided,
)
from opfl_chain.chain.bindings.types import Phases, Schedule
from opfl_chain.chain.contract import Event
from opfl_chain.protocol.errors import VerdictError
from opfl_chain.protocol.identifiers import Address, RoundNumber
from opfl_chain.protocol.sampling import is_audited
from opfl_chain.protocol.verdict import Verdict, verdict_hash
from opfl_chain.trail.record import E, Entry


@dataclass
class RoundHistory:
    """The events of one round."""

    number: RoundNumber
    phases: Phases
    audit_rate: int
    entries: list[Entry[Event]] = field(default_factory=list)

    def of(self, kind: type[E]) -> Iterator[Entry[E]]:
        for entry in self.entries:
            if isinstance(entry.event, kind):
                yield entry  # type: ignore[misc]

    def first(self, kind: type[E]) -> Entry[E] | None:
        return next(self.of(kind), None)

    @cached_property
    def opened(self) -> Entry[RoundOpened] | None:
        return self.first(RoundOpened)

    @cached_property
    def beacon(self) -> Entry[BeaconPublished] | None:
        return self.first(BeaconPublished)

    @cached_property
    def decided(self) -> Entry[VerdictDecided] | None:
        return self.first(VerdictDecided)

    @cached_property
    def finalised(self) -> Entry[RoundFinalised] | None:
        return self.first(RoundFinalised)

    @cached_property
    def voided(self) -> Entry[RoundVoided] | None:
        return self.first(RoundVoided)

    @cached_property
    def over(self) -> Entry[RoundFinalised] | Entry[RoundVoided] | None:
        """The event that ended the round."""
        return self.finalised or self.voided

    @cached_property
    def schedule(self) -> Schedule | None:
        """The last block of every phase, from the opening of the round."""
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
    def direct(self) -> dict[Address, Entry[GradientCommitted]]:
        """The commitments that clients sent themselves."""
        return {entry.event.client: entry for entry in self.of(GradientCommitted)}

    @cached_property
    def batch(self) -> Entry[BatchCommitted] | None:
        return self.first(BatchCommitted)

    @cached_property
    def partials(self) -> dict[Address, Entry[PartialPublished]]:
        return {entry.event.member: entry for entry in self.of(PartialPublished)}

    @cached_property
    def attested(self) -> dict[Address, Entry[VerdictAttested]]:
        return {entry.event.member: entry for entry in self.of(VerdictAttested)}

    @cached_property
    def majority(self) -> dict[Address, Entry[VerdictAttested]]:
        """The members that attested what was decided."""
        if self.decided is None:
            return {}
        decided = self.decided.event.verdict_hash
        return {m: entry for m, entry in self.attested.items() if attested_hash(entry) == decided}

    @cached_property
    def verdict(self) -> Verdict | None:
        """What was decided; None where nothing was, or nothing that can be read."""
        for entry in self.majority.values():
            return read_verdict(entry)
        return None

    def is_audited(self, client: Address) -> bool:
        """As the seed says; without one everyone is audited."""
        if self.beacon is None:
            return True
        return is_audited(self.beacon.event.seed, client, self.audit_rate)


def attested_hash(entry: Entry[VerdictAttested]) -> bytes:
    return verdict_hash(entry.event.verdict.passes, entry.event.verdict.faults)


def read_verdict(entry: Entry[VerdictAttested]) -> Verdict | None:
    """What a member attested; None if it is no verdict, which anyone may attest."""
    try:
        return Verdict.decode(entry.event.verdict.passes, entry.event.verdict.faults)
    except VerdictError:
        return None
