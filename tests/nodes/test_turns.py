import pytest

from opfl_chain.nodes.patience import Patience
from opfl_chain.nodes.turns import STAGGER_BLOCKS, is_due, place_of


@pytest.mark.parametrize("number", range(7))
def test_in_every_round_each_member_has_another_place(number):
    assert sorted(place_of(rank, number) for rank in range(3)) == [0, 1, 2]


def test_another_member_is_first_in_every_round():
    first = [next(r for r in range(3) if place_of(r, n) == 0) for n in range(6)]
    assert first == [0, 1, 2, 0, 1, 2]


def test_who_is_first_does_not_wait_and_the_others_wait_for_those_before():
    assert is_due(0, 100, 100) and not is_due(0, 100, 99)
    assert not is_due(2, 100, 100 + 2 * STAGGER_BLOCKS - 1)
    assert is_due(2, 100, 100 + 2 * STAGGER_BLOCKS)


def test_what_fails_again_is_left_alone_for_longer_up_to_a_limit():
    now = [0.0]
    patience = Patience(first=1.0, last=4.0, clock=lambda: now[0])
    assert patience.is_due("a")
    for pause in (1.0, 2.0, 4.0, 4.0):
        patience.failed("a")
        now[0] += pause - 0.01
        assert not patience.is_due("a") and patience.is_due("b")
        now[0] += 0.01
        assert patience.is_due("a")
    patience.succeeded("a")
    patience.failed("a")
    now[0] += 1.0
    assert patience.is_due("a")
