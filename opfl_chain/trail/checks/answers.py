"""Recomputes the verdicts of proved audits from the words that members signed.

A member publishes the messages that counted, of every session of a round. A lie among them is no
discrepancy of the trail, as long as what was decided follows from the rest: it is named among the
limits of the report, with whether it was paid for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from opfl_chain.chain.bindings import types
from opfl_chain.chain.bindings.events import (
    ClientAcquitted,
    ClientCharged,
    MemberPenalised,
    VerdictDecided,
)
from opfl_chain.chain.bindings.types import MemberFault
from opfl_chain.chain.keys import signer_of
from opfl_chain.protocol.echo import SLOTS_PER_ATTEMPT, Slot
from opfl_chain.protocol.identifiers import Address, ClientIndex, RoundNumber
from opfl_chain.protocol.published_answers import PublishedRound
from opfl_chain.protocol.statements import SigningDomain
from opfl_chain.protocol.verdict import Outcome
from opfl_chain.trail.history import Ending, History, RoundHistory
from opfl_chain.trail.record import Entry
from opfl_chain.trail.report import END, START, Finding, at
from opfl_chain.trail.sessions import SPOKEN, Session, sessions_of

_AGAINST: Final = {
    types.Outcome.OUTSIDE: Outcome.OUTSIDE,
    types.Outcome.UNANSWERED: Outcome.UNANSWERED,
}


def check_answers(
    history: History, published: Mapping[RoundNumber, PublishedRound]
) -> Iterator[Finding]:
    """Check the messages of every round that is decided on chain."""
    for number, found in sorted(published.items()):
        round_ = history.rounds.get(number)
        if round_ is None or round_.opened is None:
            fact = "the chain has the round of the answers"
            yield Finding(START, fact, False, "RoundOpened", None, number)
        elif round_.decided is not None:
            yield from _round(history, round_, round_.decided, found)


def limits_of_answers(
    history: History, published: Mapping[RoundNumber, PublishedRound]
) -> Iterator[str]:
    """Name liars, and say what of the published answers cannot be checked."""
    for number, found in sorted(published.items()):
        round_ = history.rounds.get(number)
        if round_ is None or round_.opened is None:
            continue
        if round_.decided is None:
            yield f"round {number} is not decided: its answers are not checked"
        elif all(finding.holds for finding in _bound(history, round_, round_.decided, found)):
            yield from _lies(history, round_, sessions_of(history, round_, found.messages))


def _round(
    history: History,
    round_: RoundHistory,
    decided: Entry[VerdictDecided],
    published: PublishedRound,
) -> Iterator[Finding]:
    bound = list(_bound(history, round_, decided, published))
    yield from bound
    if not all(finding.holds for finding in bound):
        return  # what is not signed says nothing
    sessions = sessions_of(history, round_, published.messages)
    if (first := sessions.get(0)) is not None:
        yield from _verdict(history, round_, decided, first)
    yield from _outcomes(history, round_, sessions)


def _bound(
    history: History,
    round_: RoundHistory,
    decided: Entry[VerdictDecided],
    published: PublishedRound,
) -> Iterator[Finding]:
    """Check that the messages are of this opening of the round, and signed by their authors."""
    trail = history.trail
    opening = round_.opened.event.opening if round_.opened is not None else None
    yield at(decided, "opening of the answers", opening, published.opening)
    domain = SigningDomain(trail.chain_id, trail.contracts["Jobs"])
    for (number, slot), message in sorted(published.messages.items()):
        (author,) = history.named([number])
        statement = message.statement(trail.job, round_.number, published.opening)
        signer = signer_of(statement, domain, message.signature) or "no valid signature"
        fact = f"signer of the message in slot {slot} of number {number}"
        yield at(decided, fact, author, signer, who=str(author))
        base = slot % SLOTS_PER_ATTEMPT
        if base in SPOKEN:
            seated = author in round_.seats
            yield at(decided, "who reports has a seat in the round", True, seated, who=str(author))
        elif base == Slot.REFEREE:
            # Who has lost its seat since may be on the bench.
            seated = author in round_.seats and author in history.seats_at(END)
            is_referee = author in history.joined and not seated
            fact = "the referee is a standby that has staked"
            yield at(decided, fact, True, is_referee, who=str(author))


def _verdict(
    history: History, round_: RoundHistory, decided: Entry[VerdictDecided], session: Session
) -> Iterator[Finding]:
    """Check that exactly those audited clients passed whose audits ended so."""
    passed = round_.passed or frozenset()
    for client in history.contributors(round_):
        index = ClientIndex(history.clients[client].event.index)
        if not round_.is_audited(client):
            continue
        if index not in session.clients:
            fact = "an audited client that gave no answer passed"
            yield at(decided, fact, False, index in passed, who=client)
            continue
        follows = session.conclusion(index).outcome is Outcome.PASSED
        if session.is_disputed(index) and index not in passed:
            continue  # a complaint that stands explains it
        yield at(
            decided,
            "whether the client passed, as follows from the signed words",
            follows,
            index in passed,
            who=client,
        )
    on_roll = {history.clients[client].event.index for client in history.contributors(round_)}
    if round_.pairs is not None:
        for index in sorted(session.clients):
            known = index in on_roll
            yield at(decided, f"client {index}, of an answer, is on the roll", True, known)


def _outcomes(
    history: History, round_: RoundHistory, sessions: Mapping[int, Session]
) -> Iterator[Finding]:
    """Check that charges and acquittals are what the signed words led to."""
    for client, stated, ended in _decided_audits(history, round_):
        due = _outcome(ClientIndex(history.clients[client].event.index), sessions)
        if due is not None or stated is Outcome.UNANSWERED:
            yield at(
                ended,
                "outcome of the audit, as follows from the signed words",
                (due or Outcome.UNANSWERED).name,
                stated.name,
            )


def _decided_audits(
    history: History, round_: RoundHistory
) -> Iterator[tuple[Address, Outcome, Entry[Ending]]]:
    """Yield the clients whose held audits members decided, and how."""
    for (number, client), audit in history.audits.items():
        if number != round_.number or audit.ended is None or client not in history.clients:
            continue
        event = audit.ended.event
        if isinstance(event, ClientCharged) and event.outcome in _AGAINST:
            yield client, _AGAINST[event.outcome], audit.ended
        elif isinstance(event, ClientAcquitted):
            yield client, Outcome.PASSED, audit.ended


def _outcome(index: ClientIndex, sessions: Mapping[int, Session]) -> Outcome | None:
    """Return what the first session that says something says; None if none does.

    Whether a complaint stands shows in the answer alone, so that it says nothing here.
    """
    for session in sessions.values():
        if index not in session.clients or session.is_disputed(index):
            continue
        if (outcome := session.conclusion(index).outcome) is not None:
            return outcome
    return None


def _lies(history: History, round_: RoundHistory, sessions: Mapping[int, Session]) -> Iterator[str]:
    number = round_.number
    paid = {
        entry.event.member
        for entry in round_.of(MemberPenalised)
        if entry.event.fault is MemberFault.FALSEHOOD
    }
    if 0 not in sessions:
        yield f"round {number}: no report is published, so its verdict is not recomputed"
    for client, stated, _ in _decided_audits(history, round_):
        due = _outcome(ClientIndex(history.clients[client].event.index), sessions)
        if due is None and stated is not Outcome.UNANSWERED:
            yield (
                f"round {number}: the words that led to the outcome {stated.name.lower()} of"
                f" {client} are not published"
            )
    for session in sessions.values():
        for member, reason in session.unusable.items():
            yield f"round {number}: a message of {member} does not count: {reason}"
        for index in sorted(session.clients):
            if session.is_disputed(index):
                yield (
                    f"round {number}: a member complains of the answer of client {index}; whether"
                    " it opens shows in the answer, which is not published"
                )
                continue
            conclusion = session.conclusion(index)
            for seat in conclusion.liars:
                liar = round_.seats[seat]
                ending = "paid for it" if liar in paid else "has not paid for it"
                yield f"round {number}: {liar} lied about client {index}, and {ending}"
            for dispute in conclusion.disputes:
                suspects = " or ".join(round_.seats[seat] for seat in dispute.seats)
                yield (
                    f"round {number}: {suspects} lied about component {dispute.component} of client"
                    f" {index}, and no standby has settled it"
                )
