"""However a peer keeps a daemon waiting, it takes a small part of the time."""

import itertools
import math
from contextlib import suppress

import pytest

from opfl_chain.roles.patience import BYTES_PER_SECOND, KeepsWaiting, Patience
from opfl_chain.transport.errors import PeerRefused, PeerTimedOut

PEER, OTHER = "0xa", "0xb"
HOUR = 3600.0


class Clock:
    """A clock that tests turn."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def patience(clock):
    return Patience(clock=clock)


def hang(patience, clock, seconds=5.0):
    """Wait for an answer that does not come."""
    with patience.waiting(PEER):
        clock.now += seconds
        raise PeerTimedOut("http://a", "timed out")


def answer(patience, clock, seconds, size=0):
    with patience.waiting(PEER) as transfer:
        clock.now += seconds
        transfer.size = size


def refuse(patience, clock, seconds):
    with patience.waiting(PEER):
        clock.now += seconds
        raise PeerRefused("http://a", 404, "not here")


WAYS = {
    "hangs": [lambda *given: hang(*given)],
    "hangs for long": [lambda *given: hang(*given, 30.0)],
    "drips": [lambda *given: answer(*given, 4.9)],
    "refuses late": [lambda *given: refuse(*given, 4.9)],
    "hangs every other time": [hang, lambda *given: answer(*given, 0.0)],
}


def waited(patience, clock, way):
    """The share of an hour of passes that a peer takes; a pass lasts a second beside that."""
    spent, requests = 0.0, itertools.cycle(WAYS[way])
    while clock.now < HOUR:
        patience.begin()
        for _ in range(20):
            started = clock.now
            with suppress(PeerTimedOut, PeerRefused, KeepsWaiting):
                next(requests)(patience, clock)
            spent += clock.now - started
        clock.now += 1.0
    return spent / clock.now


@pytest.mark.parametrize("way", WAYS)
def test_a_peer_that_keeps_us_waiting_takes_less_than_two_fifths_of_the_time(patience, clock, way):
    assert waited(patience, clock, way) < 2 / 5


@pytest.mark.parametrize("way", WAYS)
def test_with_endless_patience_it_takes_nearly_all_of_it(clock, way, monkeypatch):
    monkeypatch.setattr(Patience, "_require", lambda self, peer: None)
    assert waited(Patience(clock=clock), clock, way) > 0.9


def test_a_peer_that_answers_in_time_is_always_asked(patience, clock):
    for _ in range(1000):
        answer(patience, clock, 0.9)


def test_bytes_have_their_time(patience, clock):
    for _ in range(10):
        answer(patience, clock, 20.0, size=20 * BYTES_PER_SECOND)


def test_who_was_late_once_is_asked_after_the_others(patience, clock):
    answer(patience, clock, 2.5)
    assert patience.in_order([PEER, OTHER]) == [OTHER, PEER]
    answer(patience, clock, 0.1)
    clock.now += 60.0
    assert patience.in_order([PEER, OTHER]) == [PEER, OTHER]


def test_debt_is_paid_off_by_time_alone(patience, clock):
    with pytest.raises(PeerTimedOut):
        hang(patience, clock)
    patience.begin()
    with pytest.raises(KeepsWaiting, match=r"it is asked again in 8 s"):
        answer(patience, clock, 0.0)
    clock.now += 8.0
    answer(patience, clock, 0.0)


def test_who_hung_for_long_is_asked_again_within_a_minute(patience, clock):
    for _ in range(3):
        with patience.waiting(PEER), patience.waiting(PEER):
            clock.now += 30.0
        clock.now += 60.0
        patience.begin()
    answer(patience, clock, 0.0)


def test_who_timed_out_is_not_asked_again_in_a_pass(clock):
    """In virtual time too, where nobody is ever late."""
    patience = Patience(math.inf, clock)
    with pytest.raises(PeerTimedOut):
        hang(patience, clock, 600.0)
    with pytest.raises(KeepsWaiting, match="in the next pass"):
        answer(patience, clock, 0.0)
    patience.begin()
    answer(patience, clock, 500.0)
    answer(patience, clock, 500.0)


def test_requests_that_wait_together_count_once(patience, clock):
    with patience.waiting(PEER), patience.waiting(PEER), patience.waiting(PEER):
        clock.now += 2.9
    answer(patience, clock, 0.0)


def test_who_sends_something_else_is_left_alone(patience, clock):
    patience.misled(PEER)
    with pytest.raises(KeepsWaiting):
        answer(patience, clock, 0.0)
    virtual = Patience(math.inf, clock)
    virtual.misled(PEER)
    answer(virtual, clock, 0.0)


def test_requests_that_a_peer_leaves_open_are_bounded(patience, clock):
    def open_requests(left):
        with patience.waiting(PEER):
            if left:
                open_requests(left - 1)

    open_requests(15)
    with pytest.raises(KeepsWaiting, match="has not answered 16 requests"):
        open_requests(16)
    answer(patience, clock, 0.0)
