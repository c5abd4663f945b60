"""Recomputes the verdicts of proved audits from the answers that members signed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from opfl_chain.chain.bindings.events import VerdictDecided
from opfl_chain.chain.keys import signer_of
from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.delivery import Claim
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.exchange import (
    Answers,
    HeardOtherwise,
    Report,
    audited_places,
    decode_revealed,
    stated_subject,
    verdict_of,
)
from opfl_chain.protocol.identifiers import ClientIndex, RoundNumber
from opfl_chain.protocol.published_answers import ANSWERS, REPORT, STAGES, Messages
from opfl_chain.protocol.shares import holders_of
from opfl_chain.protocol.statements import SigningDomain
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.trail.history import History, RoundHistory
from opfl_chain.trail.record import Entry
from opfl_chain.trail.report import START, Finding, at

Sheet = Mapping[int, Answers]
T = TypeVar("T")
_AGREEING: Final = 2
"""Of three members two are honest."""


def check_answers(history: History, published: Mapping[RoundNumber, Messages]) -> Iterator[Finding]:
    """Check the messages of every round that is decided on chain."""
    for number, messages in sorted(published.items()):
        round_ = history.rounds.get(number)
        if round_ is None or round_.opened is None:
            fact = "the chain has the round of the answers"
            yield Finding(START, fact, False, "RoundOpened", None, number)
        elif round_.decided is not None:
            yield from _round(history, round_, round_.decided, messages)


def limits_of_answers(history: History, published: Mapping[RoundNumber, Messages]) -> Iterator[str]:
    """Say what of the published answers cannot be checked."""
    for number in sorted(published):
        round_ = history.rounds.get(number)
        if round_ is None:
            continue
        if round_.decided is None:
            yield f"round {number} is not decided: its answers are not checked"
        elif round_.batch is not None:
            yield (
                f"round {number} has a relayed batch, whose clients the chain does not list: those"
                " that the verdict names count as its clients; if the reports have more, only the"
                " numbers of verdicts are compared"
            )


def _round(
    history: History, round_: RoundHistory, decided: Entry[VerdictDecided], messages: Messages
) -> Iterator[Finding]:
    signed = list(_signatures(history, decided, messages))
    yield from signed
    if not all(finding.holds for finding in signed):
        return  # what is not signed says nothing
    stated, wrong = _read(
        history, decided, lambda rank: stated_subject(messages[rank, REPORT].body)
    )
    yield from wrong
    if wrong:
        return
    yield at(
        decided,
        "reports are about the same policy, boundary, weights and contributions",
        "one digest and one number",
        stated,
        holds=len(set(stated)) == 1,
    )
    # One member may lie: what two say is what the others are compared with.
    (subject, count), agreeing = Counter(stated).most_common(1)[0]
    if agreeing < _AGREEING:
        return
    yield _number_of_contributions(round_, decided, count)
    reports, wrong = _read(
        history,
        decided,
        lambda rank: Report.decode(messages[rank, REPORT].body, rank, subject, count),
    )
    yield from wrong
    claims = history.claims(round_)
    known = len(claims) == count
    if not wrong and (known or round_.batch is not None):
        yield from _conclusion(
            history, round_, decided, claims if known else None, reports, messages
        )


def _conclusion(
    history: History,
    round_: RoundHistory,
    decided: Entry[VerdictDecided],
    known: Sequence[Claim] | None,
    reports: Sequence[Report],
    messages: Messages,
) -> Iterator[Finding]:
    """Check all answers, and the verdict; `known` are the claims unless a batch hides some."""
    claims = known if known is not None else _stand_ins(round_.number, reports)
    places = audited_places(claims, reports)
    heard = [messages[rank, REPORT].body for rank in range(COMPONENTS)]
    sheets, wrong = _read(
        history,
        decided,
        lambda rank: decode_revealed(messages[rank, ANSWERS].body, rank, heard, places),
    )
    yield from wrong
    if wrong:
        return
    for place in places:
        yield from _audit(history, decided, claims[place], place, reports, sheets)
    recomputed, _ = verdict_of(claims, reports, sheets)
    found = round_.verdict
    if known is not None or found is None:
        fact = "verdict that follows from the signed answers"
        yield at(decided, fact, recomputed, found, who="the committee")
        return
    fact = "numbers of verdicts that follow from the signed answers, of clients in a batch"
    yield at(decided, fact, _numbers(recomputed), _numbers(found), who="the committee")


def _numbers(verdict: Verdict) -> dict[str, Any]:
    reasons = [fault.reason.name for fault in verdict.faults]
    return {"passed": len(verdict.passed), "faults": reasons}


def _read(
    history: History, decided: Entry[VerdictDecided], read: Callable[[int], T]
) -> tuple[list[T], list[Finding]]:
    """Read a message of every member; return them, and the finding about one that has none."""
    found: list[T] = []
    for rank, member in enumerate(history.terms.members):
        fact, wanted = "the messages of a member can be read", "a report and answers"
        try:
            found.append(read(rank))
        except HeardOtherwise as error:
            who = " or ".join(history.terms.members[each] for each in error.suspects)
            return found, [at(decided, fact, wanted, str(error), holds=False, who=who)]
        except ProtocolError as error:
            return found, [at(decided, fact, wanted, str(error), holds=False, who=member)]
    return found, []


def _signatures(
    history: History, decided: Entry[VerdictDecided], messages: Messages
) -> Iterator[Finding]:
    trail = history.trail
    domain = SigningDomain(trail.chain_id, trail.contracts["Jobs"])
    for stage in STAGES:
        for rank, member in enumerate(history.terms.members):
            fact, found = f"signer of the {stage} of member {rank}", "no message"
            if (message := messages.get((rank, stage))) is not None:
                statement = message.statement(trail.job, RoundNumber(decided.round or 0))
                found = signer_of(statement, domain, message.signature) or "no valid signature"
            yield at(decided, fact, member, found, who=member)


def _stand_ins(number: RoundNumber, reports: Sequence[Report]) -> list[Claim]:
    """Return claims of clients that are not known, numbered by their places in the reports.

    Those are audited to which two members have answers: one may lie.
    """
    nothing = bytes(32)
    return [
        Claim(
            ClientIndex(place),
            number,
            nothing,
            nothing,
            sum(report.rows[place].commitment != nothing for report in reports) >= _AGREEING,
        )
        for place in range(len(reports[0].rows))
    ]


def _number_of_contributions(
    round_: RoundHistory, decided: Entry[VerdictDecided], count: int
) -> Finding:
    least = len(round_.direct)
    most = least + (round_.batch.event.count if round_.batch is not None else 0)
    fact = "contributions in the reports"
    expected = least if least == most else f"{least} to {most}, with a batch of {most - least}"
    return at(decided, fact, expected, count, holds=least <= count <= most)


def _audit(
    history: History,
    decided: Entry[VerdictDecided],
    claim: Claim,
    place: int,
    reports: Sequence[Report],
    sheets: Sequence[Sheet],
) -> Iterator[Finding]:
    """Check that all members revealed what they committed to, and that holders agree."""
    members, about = history.terms.members, f"contribution {place} (client {claim.client})"
    for rank, (report, sheet) in enumerate(zip(reports, sheets, strict=True)):
        yield at(
            decided,
            f"commitment to the answers on {about}",
            report.rows[place].commitment,
            sheet[place].commitment,
            who=members[rank],
        )
    for index in range(COMPONENTS):
        one, other = holders_of(index)
        yield at(
            decided,
            f"members {one} and {other} give one answer on component {index} of {about}",
            sheets[one][place].by_component()[index].encode(),
            sheets[other][place].by_component()[index].encode(),
            who=f"{members[one]} or {members[other]}",
        )
