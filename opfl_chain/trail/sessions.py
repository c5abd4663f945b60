"""Sessions of members on proved audits, read from the messages that they published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Final

from opfl_chain.protocol.audit_exchange import (
    Conclusion,
    RefereeReveal,
    Report,
    Reveal,
    conclude,
)
from opfl_chain.protocol.echo import SLOTS_PER_ATTEMPT, Slot
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.protocol.published_answers import Messages, PublishedMessage
from opfl_chain.protocol.sealing import Complaint
from opfl_chain.trail.history import History, RoundHistory

SPOKEN: Final = (Slot.REPORT, Slot.REVEAL)
"""Messages of members with a seat in a session; a standby speaks in the slot of the referee."""


@dataclass(frozen=True)
class Session:
    """The messages of one session that can be read and are about the same facts."""

    reports: Mapping[int, Report]
    """Reports by seat."""
    reveals: Mapping[int, Reveal]
    referee: RefereeReveal | None
    unusable: Mapping[Address, str] = field(default_factory=dict)
    """Defects of messages that do not count, by member."""

    @property
    def clients(self) -> Set[ClientIndex]:
        """The clients whose answers were examined."""
        return {client for report in self.reports.values() for client in report.rows}

    def is_disputed(self, client: ClientIndex) -> bool:
        """Return whether a member complains of the answer, which shows in its bundle alone."""
        return any(isinstance(r.rows.get(client), Complaint) for r in self.reports.values())

    def conclusion(self, client: ClientIndex) -> Conclusion:
        """Return how the audit of a client ends in this session, if no complaint stands."""
        rows = {seat: r.rows[client] for seat, r in self.reports.items() if client in r.rows}
        words = {s: r.answers[client] for s, r in self.reveals.items() if client in r.answers}
        judged = self.referee.answers.get(client) if self.referee is not None else None
        return conclude(rows, words, referee=judged)


def sessions_of(
    history: History, round_: RoundHistory, messages: Messages
) -> Mapping[int, Session]:
    """Return the sessions of a round by attempt; 0 is the round itself."""
    found: dict[int, dict[int, list[PublishedMessage]]] = {}
    for (_, slot), message in sorted(messages.items()):
        attempt, base = divmod(slot, SLOTS_PER_ATTEMPT)
        found.setdefault(attempt, {}).setdefault(base, []).append(message)
    return {
        attempt: _session(history, round_, slots)
        for attempt, slots in sorted(found.items())
        if Slot.REPORT in slots
    }


def _session(
    history: History, round_: RoundHistory, slots: Mapping[int, list[PublishedMessage]]
) -> Session:
    reports: dict[int, Report] = {}
    reveals: dict[int, Reveal] = {}
    referee: RefereeReveal | None = None
    unusable: dict[Address, str] = {}
    for slot in (*SPOKEN, Slot.REFEREE):
        for message in slots.get(slot, []):
            author = history.roster[message.number]
            try:
                if slot == Slot.REFEREE:
                    referee = referee or RefereeReveal.decode(message.body, message.number)
                    continue
                seat = round_.seats.index(author)
                if slot == Slot.REPORT:
                    reports[seat] = Report.decode(message.body, seat)
                else:
                    reveals[seat] = Reveal.decode(message.body, seat)
            except ProtocolError as error:
                unusable[author] = str(error)
    return _about_one_subject(round_, Session(reports, reveals, referee, unusable))


def _about_one_subject(round_: RoundHistory, session: Session) -> Session:
    """Drop reports on other facts than most: members do not read them either."""
    subjects = Counter(report.subject for report in session.reports.values())
    if len(subjects) <= 1:
        return session
    subject, _ = subjects.most_common(1)[0]
    kept = {seat: r for seat, r in session.reports.items() if r.subject == subject}
    others = {
        round_.seats[seat]: "reports on other answers, policy, boundary or weights than the others"
        for seat in session.reports
        if seat not in kept
    }
    return replace(session, reports=kept, unusable={**session.unusable, **others})
