"""Conclusions of audits, for everything that one member, or a referee, can do.

Words are taken from small answers that accept or not, so that all ways of a liar can be played.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

import pytest

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
from opfl_chain.protocol.holders import weigh
from opfl_chain.protocol.proof.answers import accepts
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.sealing import derived_key, file_complaint
from opfl_chain.protocol.shares import held_indices
from opfl_chain.protocol.verdict import Outcome

STATE, ELSEWHERE = b"t" * 32, b"e" * 32
MODULUS = 2**127 - 1
GOOD = {0: Answer(1, 2, 20, 5), 1: Answer(3, 1, 1, 7), 2: Answer(0, 1, MODULUS - 5, MODULUS - 12)}
BAD = {**GOOD, 1: replace(GOOD[1], rest=8)}
"""Answers to the three components: of GOOD the sums fulfil left * right = product and rest = 0."""
LEAVES = b"l" * 32
SEATS = range(3)
COMPLAINT = {
    seat: file_complaint(
        derived_key(bytes([seat]) * 32, b"member"), seat, derived_key(b"c" * 32, b"x").public, STATE
    )
    for seat in SEATS
}


def words_of(seat: int, answers: Mapping[int, Answer], state: bytes = STATE) -> Answers:
    own, following = held_indices(seat)
    return Answers(seat, state, answers[own], answers[following])


def lie(answer: Answer, by: int = 1) -> Answer:
    return replace(answer, rest=(answer.rest + by) % MODULUS)


def ways_of(seat: int, true: Mapping[int, Answer]) -> Iterator[tuple[Row | None, Answers | None]]:
    """All that a liar can put into its report and its words, as far as it makes a difference.

    It may know the true words of everybody, and add an error that makes bad ones accept.
    """
    versions = []
    for first, second in product((0, 1, -1), repeat=2):
        own, following = held_indices(seat)
        told = {**true, own: lie(true[own], first), following: lie(true[following], second)}
        versions.append(words_of(seat, told))
    versions.append(words_of(seat, true, ELSEWHERE))
    yield None, None
    yield COMPLAINT[seat], None
    for committed in versions:
        yield ReportRow(LEAVES, committed.commitment), None
        yield COMPLAINT[seat], committed
        yield None, committed
        for revealed in versions:
            yield ReportRow(LEAVES, committed.commitment), revealed


def sessions(
    true: Mapping[int, Answer],
) -> Iterator[tuple[int, dict[int, Row], dict[int, Answers]]]:
    """Every session with one liar: its seat, and what everybody knows of all three members."""
    for liar in SEATS:
        honest = [seat for seat in SEATS if seat != liar]
        for row, words in ways_of(liar, true):
            rows: dict[int, Row] = {
                seat: ReportRow(LEAVES, words_of(seat, true).commitment) for seat in honest
            }
            said = {seat: words_of(seat, true) for seat in honest}
            if row is not None:
                rows[liar] = row
            if words is not None:
                said[liar] = words
            yield liar, rows, said


def test_the_answers_of_these_tests_are_good_and_bad() -> None:
    for answers, outcome in ((GOOD, Outcome.PASSED), (BAD, Outcome.OUTSIDE)):
        rows = {s: ReportRow(LEAVES, words_of(s, answers).commitment) for s in SEATS}
        found = conclude(rows, {s: words_of(s, answers) for s in SEATS}, STATE)
        assert found == Conclusion(outcome)


@pytest.mark.parametrize("true", [GOOD, BAD], ids=["good", "bad"])
def test_no_liar_turns_an_audit(true: dict[int, Answer]) -> None:
    """A good contribution is never charged, a bad one never passes, and no honest one is blamed."""
    right = Outcome.PASSED if true is GOOD else Outcome.OUTSIDE
    seen = set()
    for liar, rows, said in sessions(true):
        found = conclude(rows, said, STATE)
        assert found.outcome in (right, None)
        assert set(found.liars) <= {liar}
        assert all(liar in dispute.seats for dispute in found.disputes)
        seen.add((found.outcome, bool(found.disputes), bool(found.unconfirmed), found.liars))
    assert len(seen) > 5  # the ways are not all the same


@pytest.mark.parametrize("true", [GOOD, BAD], ids=["good", "bad"])
def test_with_an_honest_referee_every_audit_is_decided(true: dict[int, Answer]) -> None:
    right = Outcome.PASSED if true is GOOD else Outcome.OUTSIDE
    for liar, rows, said in sessions(true):
        before = conclude(rows, said, STATE)
        asked = {index: true[index] for index in before.for_referee}
        found = conclude(rows, said, STATE, referee=asked)
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
        rows: dict[int, Row] = {s: ReportRow(LEAVES, words_of(s, true).commitment) for s in present}
        said = {seat: words_of(seat, true) for seat in present}
        judged = {k: lie(true[k], by) for k, by in enumerate(lies)}
        found = conclude(rows, said, STATE, referee=judged)
        assert found.outcome in (right, None)
        assert found.outcome is right or (true is BAD and away is not None)
        assert found.liars == ()


def test_one_member_alone_decides_nothing() -> None:
    for seat, true in product(SEATS, (GOOD, BAD)):
        rows: dict[int, Row] = {seat: ReportRow(LEAVES, words_of(seat, true).commitment)}
        found = conclude(rows, {seat: words_of(seat, true)}, STATE)
        assert found.outcome is None and found.for_referee == (0, 1, 2)
        judged = conclude(rows, {seat: words_of(seat, true)}, STATE, referee=true)
        assert judged.outcome is None  # a referee by itself says nothing


def test_without_confirmation_an_absence_would_charge_an_honest_client() -> None:
    """The defence off: what is left of words decides. The one who stays lies, the other is away."""
    liar, there = 1, 2
    told = {**GOOD, 1: lie(GOOD[1])}
    said = {liar: words_of(liar, told), there: words_of(there, GOOD)}
    rows: dict[int, Row] = {s: ReportRow(LEAVES, each.commitment) for s, each in said.items()}
    found = conclude(rows, said, STATE)
    assert found.outcome is None and found.unconfirmed == (0, 1)
    words = [weigh({liar: told[k]} if k == 1 else {there: GOOD[k]}).word for k in SEATS]
    assert None not in words and not accepts([word for word in words if word])


def test_words_that_break_their_commitment_are_a_lie_and_count_for_nothing() -> None:
    """Else who speaks last would choose its words after all others'."""
    rows: dict[int, Row] = {s: ReportRow(LEAVES, words_of(s, BAD).commitment) for s in SEATS}
    said = {s: words_of(s, BAD) for s in SEATS}
    said[1] = replace(said[1], own=lie(said[1].own, -1))  # would accept, were it believed
    found = conclude(rows, said, STATE)
    assert (found.outcome, found.liars, found.unconfirmed) == (None, (1,), (1, 2))


def test_a_standing_complaint_ends_the_audit_without_an_answer() -> None:
    rows: dict[int, Row] = {s: ReportRow(LEAVES, words_of(s, GOOD).commitment) for s in SEATS}
    rows[2] = COMPLAINT[2]
    said = {s: words_of(s, GOOD) for s in (0, 1)}
    assert conclude(rows, said, STATE, standing=[2]) == Conclusion(Outcome.UNANSWERED)
    framed = conclude(rows, said, STATE)
    assert framed.outcome is Outcome.PASSED and framed.liars == (2,)


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
        Report(seat, STATE, {4: ReportRow(LEAVES, words_of(seat, GOOD).commitment)}),
        Reveal(seat, {4: words_of(seat, GOOD)}),
    )
    for seat in SEATS
}
SILENT = Report(1, STATE, {}), Reveal(1, {})


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
    unopened = Report(2, STATE, {4: COMPLAINT[2]}), Reveal(2, {})
    assert shirking((1, SILENT), (2, unopened)) == set()
    assert shirking((1, SILENT), (2, (Report(2, STATE, {}), Reveal(2, {})))) == set()


def test_member_that_took_its_seat_later_may_lack_keys() -> None:
    assert shirking((1, SILENT), sealed_to=range(1)) == set()
