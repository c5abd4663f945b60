"""Conclusions of audits, for everything that one member, or a referee, can do.

Words are taken from small answers that accept or not, so that all ways of a liar can be played.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

import pytest
import unconfirmed

from opfl_chain.protocol.audit_exchange import (
    Answers,
    Conclusion,
    Report,
    ReportRow,
    Reveal,
    Row,
    conclude,
    shirking_seats,
    verdict_of,
)
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.sealing import derived_key, file_complaint
from opfl_chain.protocol.shares import held_indices
from opfl_chain.protocol.verdict import Outcome

FACTS = b"s" * 32
MODULUS = 2**127 - 1
GOOD = {0: Answer(1, 2, 20, 5), 1: Answer(3, 1, 1, 7), 2: Answer(0, 1, MODULUS - 5, MODULUS - 12)}
BAD = {**GOOD, 1: replace(GOOD[1], rest=8)}
"""Answers to the three components: of GOOD the sums fulfil left * right = product and rest = 0."""
SEATS = range(3)
COMPLAINT = {
    seat: file_complaint(
        derived_key(bytes([seat]) * 32, b"member"),
        seat,
        derived_key(b"c" * 32, b"x").public,
        FACTS,
    )
    for seat in SEATS
}


def words_of(seat: int, answers: Mapping[int, Answer]) -> Answers:
    own, following = held_indices(seat)
    return Answers(seat, answers[own], answers[following])


def lie(answer: Answer, by: int = 1) -> Answer:
    return replace(answer, rest=(answer.rest + by) % MODULUS)


def ways_of(seat: int, true: Mapping[int, Answer]) -> Iterator[tuple[Row | None, Answers | None]]:
    """All that a liar can put into its report and its words, as far as it makes a difference.

    It may know the true words of everybody, and add an error that makes bad ones accept: its client
    tells it.
    """
    versions = []
    for first, second in product((0, 1, -1), repeat=2):
        own, following = held_indices(seat)
        told = {**true, own: lie(true[own], first), following: lie(true[following], second)}
        versions.append(words_of(seat, told))
    yield None, None
    yield COMPLAINT[seat], None
    for committed in versions:
        yield ReportRow(committed.commitment), None
        yield COMPLAINT[seat], committed
        yield None, committed
        for revealed in versions:
            yield ReportRow(committed.commitment), revealed


def sessions(
    true: Mapping[int, Answer], away: int | None = None
) -> Iterator[tuple[int, dict[int, Row], dict[int, Answers]]]:
    """Every session with one liar: its seat, and what everybody knows of all three members.

    One that is honest may be away.
    """
    for liar in SEATS:
        honest = [seat for seat in SEATS if seat not in (liar, away)]
        if liar == away:
            continue
        for row, words in ways_of(liar, true):
            rows: dict[int, Row] = {
                seat: ReportRow(words_of(seat, true).commitment) for seat in honest
            }
            said = {seat: words_of(seat, true) for seat in honest}
            if row is not None:
                rows[liar] = row
            if words is not None:
                said[liar] = words
            yield liar, rows, said


def test_the_answers_of_these_tests_are_good_and_bad() -> None:
    for answers, outcome in ((GOOD, Outcome.PASSED), (BAD, Outcome.OUTSIDE)):
        rows = {s: ReportRow(words_of(s, answers).commitment) for s in SEATS}
        found = conclude(rows, {s: words_of(s, answers) for s in SEATS})
        assert found == Conclusion(outcome)


@pytest.mark.parametrize("true", [GOOD, BAD], ids=["good", "bad"])
def test_no_liar_turns_an_audit(true: dict[int, Answer]) -> None:
    """A good contribution is never charged, a bad one never passes, and no honest one is blamed."""
    right = Outcome.PASSED if true is GOOD else Outcome.OUTSIDE
    seen = set()
    for liar, rows, said in sessions(true):
        found = conclude(rows, said)
        assert found.outcome in (right, None)
        assert set(found.liars) <= {liar}
        assert all(liar in dispute.seats for dispute in found.disputes)
        seen.add((found.outcome, bool(found.disputes), bool(found.unconfirmed), found.liars))
    assert len(seen) > 5  # the ways are not all the same


@pytest.mark.parametrize("away", SEATS)
@pytest.mark.parametrize("true", [GOOD, BAD], ids=["good", "bad"])
def test_no_liar_turns_an_audit_while_an_honest_member_is_away(
    true: dict[int, Answer], away: int
) -> None:
    """Two words on every component are those of both holders, or of one and the referee."""
    right = Outcome.PASSED if true is GOOD else Outcome.OUTSIDE
    turned = set()
    for liar, rows, said in sessions(true, away):
        before = conclude(rows, said)
        assert before.outcome is None
        asked = {index: true[index] for index in before.for_referee}
        found = conclude(rows, said, referee=asked)
        assert found.outcome in (right, None)
        assert set(found.liars) <= {liar}
        turned.add(unconfirmed.conclude(rows, said).outcome)
    assert turned == {Outcome.PASSED, Outcome.OUTSIDE, None}


@pytest.mark.parametrize("true", [GOOD, BAD], ids=["good", "bad"])
def test_an_absent_member_stops_no_audit_that_a_standby_confirms(true: dict[int, Answer]) -> None:
    right = Outcome.PASSED if true is GOOD else Outcome.OUTSIDE
    for away in SEATS:
        said = {seat: words_of(seat, true) for seat in SEATS if seat != away}
        rows: dict[int, Row] = {seat: ReportRow(each.commitment) for seat, each in said.items()}
        before = conclude(rows, said)
        assert (before.outcome, before.for_referee) == (None, tuple(sorted(held_indices(away))))
        asked = {index: true[index] for index in before.for_referee}
        assert conclude(rows, said, referee=asked) == Conclusion(right)


@pytest.mark.parametrize("true", [GOOD, BAD], ids=["good", "bad"])
def test_with_an_honest_referee_every_audit_is_decided(true: dict[int, Answer]) -> None:
    right = Outcome.PASSED if true is GOOD else Outcome.OUTSIDE
    for liar, rows, said in sessions(true):
        before = conclude(rows, said)
        asked = {index: true[index] for index in before.for_referee}
        found = conclude(rows, said, referee=asked)
        assert found.outcome is right
        assert set(found.liars) <= {liar}
        if before.disputes:
            assert found.liars == (liar,)


@pytest.mark.parametrize("true", [GOOD, BAD], ids=["good", "bad"])
def test_no_bad_referee_turns_an_audit_in_which_all_seats_are_honest(
    true: dict[int, Answer],
) -> None:
    """One of them may be away: then it can delay the audit, and no more."""
    right = Outcome.PASSED if true is GOOD else Outcome.OUTSIDE
    for away, lies in product((None, *SEATS), product((0, 1, -1), repeat=3)):
        present = [seat for seat in SEATS if seat != away]
        rows: dict[int, Row] = {s: ReportRow(words_of(s, true).commitment) for s in present}
        said = {seat: words_of(seat, true) for seat in present}
        judged = {k: lie(true[k], by) for k, by in enumerate(lies)}
        found = conclude(rows, said, referee=judged)
        assert found.outcome in (right, None)
        assert found.outcome is right or away is not None
        assert found.liars == ()


def test_one_member_alone_decides_nothing() -> None:
    for seat, true in product(SEATS, (GOOD, BAD)):
        rows: dict[int, Row] = {seat: ReportRow(words_of(seat, true).commitment)}
        found = conclude(rows, {seat: words_of(seat, true)})
        assert found.outcome is None and found.for_referee == (0, 1, 2)
        judged = conclude(rows, {seat: words_of(seat, true)}, referee=true)
        assert judged.outcome is None  # a referee by itself says nothing


@pytest.mark.parametrize(
    ("true", "error", "turned"),
    [(GOOD, 1, Outcome.OUTSIDE), (BAD, -1, Outcome.PASSED)],
    ids=["good", "bad"],
)
def test_without_confirmation_one_word_would_turn_an_audit(
    true: dict[int, Answer], error: int, turned: Outcome
) -> None:
    """Its other holder is away. The word is forged with the client's help: it knows all answers."""
    liar, there = 1, 2
    said = {
        liar: words_of(liar, {**true, 1: lie(true[1], error)}),
        there: words_of(there, true),
    }
    rows: dict[int, Row] = {seat: ReportRow(each.commitment) for seat, each in said.items()}
    assert unconfirmed.conclude(rows, said).outcome is turned
    found = conclude(rows, said)
    assert found.outcome is None and found.unconfirmed == (0, 1)
    judged = conclude(rows, said, referee={index: true[index] for index in found.for_referee})
    assert judged.outcome is None and judged.liars == ()  # the referee's word against one
    assert [(each.component, each.seats) for each in judged.disputes] == [(1, (liar,))]


def test_words_that_break_their_commitment_are_a_lie_and_count_for_nothing() -> None:
    """Else who speaks last would choose its words after all others'."""
    rows: dict[int, Row] = {s: ReportRow(words_of(s, BAD).commitment) for s in SEATS}
    said = {s: words_of(s, BAD) for s in SEATS}
    said[1] = replace(said[1], own=lie(said[1].own, -1))  # would accept, were it believed
    found = conclude(rows, said)
    assert (found.outcome, found.liars, found.unconfirmed) == (None, (1,), (1, 2))


def test_a_standing_complaint_ends_the_audit_without_an_answer() -> None:
    rows: dict[int, Row] = {s: ReportRow(words_of(s, GOOD).commitment) for s in SEATS}
    rows[2] = COMPLAINT[2]
    said = {s: words_of(s, GOOD) for s in (0, 1)}
    assert conclude(rows, said, standing=[2]) == Conclusion(Outcome.UNANSWERED)
    framed = conclude(rows, said)
    assert framed.outcome is None and framed.liars == (2,)
    judged = conclude(rows, said, referee={index: GOOD[index] for index in framed.for_referee})
    assert judged.outcome is Outcome.PASSED and judged.liars == (2,)


def test_the_verdict_has_who_is_not_audited_and_who_passed() -> None:
    ends = {
        1: Conclusion(Outcome.PASSED),
        2: Conclusion(Outcome.OUTSIDE),
        3: Conclusion(None),
        4: Conclusion(Outcome.UNANSWERED),
    }
    verdict = verdict_of(range(7), {1, 2, 3, 4, 5}, ends)
    assert verdict.passed == {0, 1, 6}


# --- members that say less than they could

TOLD = {
    seat: (
        Report(seat, FACTS, {4: ReportRow(words_of(seat, GOOD).commitment)}),
        Reveal(seat, {4: words_of(seat, GOOD)}),
    )
    for seat in SEATS
}
SILENT = Report(1, FACTS, {}), Reveal(1, {})


def shirking(
    *changed: tuple[int, tuple[Report | None, Reveal | None]], sealed_to: range = SEATS
) -> set[int]:
    told = {**TOLD, **dict(changed)}
    reports = {seat: report for seat, (report, _) in told.items() if report is not None}
    reveals = {seat: reveal for seat, (_, reveal) in told.items() if reveal is not None}
    return shirking_seats(reports, reveals, sealed_to)


def test_nobody_shirks_who_reports_and_reveals() -> None:
    assert shirking() == set()


@pytest.mark.parametrize(
    "told",
    [
        (None, TOLD[1][1]),
        (TOLD[1][0], None),
        (TOLD[1][0], Reveal(1, {})),
        SILENT,
    ],
)
def test_member_that_says_less_than_it_could_shirks(
    told: tuple[Report | None, Reveal | None],
) -> None:
    assert shirking((1, told)) == {1}


def test_answer_that_another_seat_could_not_open_either_blames_nobody() -> None:
    """A client can spoil a component of two seats, and the third one finds nothing wrong."""
    unopened = Report(2, FACTS, {4: COMPLAINT[2]}), Reveal(2, {})
    assert shirking((1, SILENT), (2, unopened)) == set()
    assert shirking((1, SILENT), (2, (Report(2, FACTS, {}), Reveal(2, {})))) == set()


def test_member_that_took_its_seat_later_may_lack_keys() -> None:
    assert shirking((1, SILENT), sealed_to=range(1)) == set()
