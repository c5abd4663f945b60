import pytest

from opfl_chain.roles.round_driver import STAGGER_BLOCKS, place_of, turn_of
from opfl_chain.system.backoff import Backoff


@pytest.mark.parametrize("number", range(7))
def test_in_every_round_each_member_has_another_place(number):
    assert sorted(place_of(rank, number) for rank in range(3)) == [0, 1, 2]


def test_another_member_is_first_in_every_round():
    first = [next(r for r in range(3) if place_of(r, n) == 0) for n in range(6)]
    assert first == [0, 1, 2, 0, 1, 2]


def test_first_place_does_not_wait_and_later_places_do():
    assert turn_of(0, 100) == 100
    assert turn_of(2, 100) == 100 + 2 * STAGGER_BLOCKS


def test_pause_grows_with_every_failure_up_to_a_limit():
    now = [0.0]
    backoff = Backoff(first=1.0, last=4.0, clock=lambda: now[0])
    assert backoff.is_due("a")
    for pause in (1.0, 2.0, 4.0, 4.0):
        backoff.failed("a")
        now[0] += pause - 0.01
        assert not backoff.is_due("a") and backoff.is_due("b")
        now[0] += 0.01
        assert backoff.is_due("a")
    backoff.succeeded("a")
    backoff.failed("a")
    now[0] += 1.0
    assert backoff.is_due("a")
