"""Connections that give way when all places are taken."""

from __future__ import annotations

import select
import socket
from dataclasses import dataclass

import pytest

from opfl_chain.transport.pool import Pool, is_ready


@dataclass(eq=False)
class Visitor:
    active_at: float = 0.0
    sender: str = "anyone"
    waits_for_us: bool = False


def filled(*guests: Visitor, places_per_sender: int = 9) -> Pool[Visitor]:
    """A pool whose places are all taken."""
    pool: Pool[Visitor] = Pool(len(guests), places_per_sender)
    for guest in guests:
        assert pool.enter(guest) is None
    return pool


def test_the_longest_idle_one_gives_way() -> None:
    recent, idle = Visitor(8), Visitor(7)
    pool = filled(recent, idle)
    assert pool.enter(Visitor(9)) is idle
    assert len(pool) == 2


def test_one_that_never_spoke_gives_way_before_any_that_did() -> None:
    spoke, first, second = Visitor(1), Visitor(), Visitor()
    pool = filled(spoke, first, second)
    new = Visitor(), Visitor(), Visitor()
    assert [pool.enter(each) for each in new] == [first, second, new[0]]


def test_one_that_waits_for_us_is_not_idle() -> None:
    late, idle = Visitor(1, waits_for_us=True), Visitor(2)
    assert filled(late, idle).enter(Visitor()) is idle
    assert filled(late).enter(Visitor()) is late  # as there is no other


def test_a_sender_with_all_its_places_displaces_its_own() -> None:
    other, own = Visitor(1, "other"), Visitor(2, "greedy")
    pool: Pool[Visitor] = Pool(3, 1)
    assert pool.enter(other) is pool.enter(own) is None
    assert pool.enter(Visitor(3, "greedy")) is own


def test_a_place_that_was_left_is_free() -> None:
    guest = Visitor()
    pool = filled(guest)
    pool.leave(guest)
    pool.leave(guest)
    assert pool.enter(Visitor()) is None


@pytest.mark.parametrize("event", [select.POLLIN, select.POLLOUT])
def test_a_stream_is_ready_if_we_can_go_on(event: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert is_ready(ours, event) is (event == select.POLLOUT)
        ours.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                ours.send(bytes(1 << 16))
        theirs.send(b"x")
        assert is_ready(ours, event) is (event == select.POLLIN)
    assert is_ready(ours, event)
