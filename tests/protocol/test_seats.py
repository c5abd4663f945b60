"""Seats that are lost after meetings that failed: one bad member soon, whatever fails beside it."""

from __future__ import annotations

import protocol_vectors as vectors
import pytest
from protocol_vectors import columns

from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.seats import PastChange, due_change, suspicion_of

VECTOR = vectors.load("seats")
ROSTER: tuple[Address, ...] = tuple(VECTOR["members"])
Seats = tuple[Address, ...]
Job = tuple[Seats, tuple[PastChange, ...]]
NOBODY: frozenset[Address] = frozenset()
MOST_FAILURES = 3
FOR_EVER = 30

one_bad_member = pytest.mark.parametrize("bad", ROSTER[:4])
standbys = pytest.mark.parametrize("standbys", [1, 2])


def accounts(places: list[int]) -> Seats:
    return tuple(ROSTER[place] for place in places)


def test_changes_of_seats() -> None:
    for seated, bench, at_fault, before, left, failed, seat, standby in columns(
        VECTOR,
        "seated",
        "benches",
        "atFault",
        "before",
        "left",
        "failed",
        "dueSeats",
        "dueStandbys",
    ):
        history = [PastChange(accounts(s), each) for s, each in zip(before, left, strict=True)]
        change = due_change(
            accounts(seated), accounts(bench), set(accounts(at_fault)), history, failed
        )
        found = (change.seat, ROSTER.index(change.standby)) if change else (-1, -1)
        assert found == (seat, standby)


def after_failure(roster: Seats, job: Job, second_chance: bool = True) -> Job:
    """Play the change that is due after a meeting among the present seats has failed."""
    seats, history = job
    excluded = NOBODY if second_chance else suspicion_of(history, NOBODY).excluded
    bench = [each for each in roster if each not in seats and each not in excluded]
    due = due_change(seats, bench, NOBODY, history, failed=True)
    if due is None:
        return job
    after = tuple(due.standby if at == due.seat else each for at, each in enumerate(seats))
    return after, (*history, PastChange(seats, due.seat))


def most_failures(roster: Seats, bad: Address, crashes: int, second_chance: bool = True) -> int:
    """The meetings that a bad member makes fail at most, if honest machines fail in so many."""
    most = 0
    waiting: list[tuple[Job, int, int]] = [((roster[:3], ()), 0, crashes)]
    while waiting:
        job, failures, left = waiting.pop()
        most = max(most, failures)
        if most == FOR_EVER:
            return most
        after = after_failure(roster, job, second_chance)
        if bad in job[0]:
            waiting.append((after, failures + 1, left))
        if left:
            waiting.append((after, failures, left - 1))
    return most


@standbys
@one_bad_member
@pytest.mark.parametrize("crashes", [0, 1, 2])
def test_one_member_makes_three_meetings_fail_and_three_more_for_every_honest_machine_that_does(
    standbys: int, bad: Address, crashes: int
) -> None:
    most = most_failures(ROSTER[: 3 + standbys], bad, crashes)
    assert most <= MOST_FAILURES * (1 + crashes)
    assert most > 0 or crashes == 0, "a member that never had a seat can do nothing"


def test_three_is_not_too_many() -> None:
    assert max(most_failures(ROSTER[:4], bad, 0) for bad in ROSTER[:4]) == MOST_FAILURES


def test_without_a_second_chance_for_the_excluded_it_could_go_on_for_ever() -> None:
    """One honest machine fails, an honest member is excluded, and no standby is left."""
    assert most_failures(ROSTER[:4], ROSTER[0], 1, second_chance=False) == FOR_EVER


def test_who_left_for_a_fault_says_nothing_about_meetings() -> None:
    history = [PastChange(ROSTER[:3], 1)]
    assert suspicion_of(history, {ROSTER[1]}) == suspicion_of([], NOBODY)
    assert suspicion_of(history, NOBODY).suspects == set(ROSTER[:3])


def test_a_meeting_that_failed_changes_nothing_without_a_standby() -> None:
    assert due_change(ROSTER[:3], [], NOBODY, failed=True) is None
    assert due_change(ROSTER[:3], ROSTER[3:4], {ROSTER[3]}, failed=True) is None
