"""Places of strangers, of known addresses and of peers with certificates."""

from __future__ import annotations

import pytest

from opfl_chain.transport.limits import Limits
from opfl_chain.transport.reception import Displaced, Reception, Visit
from opfl_chain.transport.routes import Refusal

LIMITS = Limits(connections=2, connections_per_address=2, connections_per_peer=1)


class Line:
    """A stream that is always idle."""

    waits_for_us = False

    def __init__(self) -> None:
        self.active_at = 0.0
        self.is_cut = False

    def touch(self) -> None:
        self.active_at += 1

    def cut(self) -> None:
        self.is_cut = True


@pytest.fixture
def reception() -> Reception:
    return Reception(LIMITS)


def arrive(reception: Reception, remote: str = "10.0.0.1") -> Visit:
    visit = Visit(Line(), remote)
    reception.admit(visit)
    return visit


def crowd(reception: Reception) -> None:
    """Strangers from many addresses, all of them active."""
    for number in range(10):
        arrive(reception, f"10.1.0.{number}").stream.touch()


def test_a_stranger_that_is_idle_loses_its_place(reception: Reception) -> None:
    visit = arrive(reception)
    crowd(reception)
    assert visit.stream.is_cut
    with pytest.raises(Displaced), reception.handling(visit):
        pass
    with pytest.raises(Displaced):
        reception.recognise(visit, "member-1")


def test_a_peer_loses_its_place_to_nobody_but_itself(reception: Reception) -> None:
    one, other = arrive(reception), arrive(reception)
    reception.recognise(one, "member-1")
    reception.recognise(other, "member-2")
    crowd(reception)
    assert not one.stream.is_cut and not other.stream.is_cut
    again = arrive(reception)
    reception.recognise(again, "member-1")
    assert one.stream.is_cut
    assert not other.stream.is_cut and not again.stream.is_cut


def test_a_known_address_loses_no_place_to_strangers(reception: Reception) -> None:
    reception.vouch_for(arrive(reception))
    visit = arrive(reception)
    crowd(reception)
    assert not visit.stream.is_cut


def test_a_request_that_is_handled_is_not_cut_off(reception: Reception) -> None:
    visit = arrive(reception)
    with reception.handling(visit):
        crowd(reception)
    assert not visit.stream.is_cut
    crowd(reception)
    assert visit.stream.is_cut  # it did not read its answer


def test_handlers_that_strangers_keep_busy_are_free_for_peers(reception: Reception) -> None:
    first, second, third = (arrive(reception, f"10.0.0.{number}") for number in range(3))
    with reception.handling(second), reception.handling(third):
        late = arrive(reception)
        with pytest.raises(Refusal, match="503"), reception.handling(late):
            pass
        reception.recognise(late, "member-1")
        with reception.handling(late):
            pass
    assert first.stream.is_cut
    with reception.handling(arrive(reception)):
        pass  # handlers are free again


def test_one_address_does_not_get_all_handlers() -> None:
    reception = Reception(Limits(connections=9, connections_per_address=1))
    with reception.handling(arrive(reception)):
        again = arrive(reception)
        with pytest.raises(Refusal, match="503"), reception.handling(again):
            pass
        with reception.handling(arrive(reception, "10.0.0.2")):
            pass


def test_who_has_left_is_not_displaced(reception: Reception) -> None:
    visit = arrive(reception)
    reception.leave(visit)
    crowd(reception)
    assert not visit.stream.is_cut
