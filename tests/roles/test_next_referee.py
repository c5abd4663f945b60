"""A standby that settled two components takes a seat, and the next one settles the third.

An honest member was away from a hearing in which a bad one lied about the component that neither
the one that was away nor its successor holds.
"""

from types import SimpleNamespace

import pytest

from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.referee import HandedKeys, agreed_wanted
from opfl_chain.protocol.roll import RollEntry
from opfl_chain.roles.member.referees import Referees
from opfl_chain.roles.member.store import SCHEMA, MemberStore
from opfl_chain.roles.state import State

ALICE, STANDBY, NEXT = "0xa", "0xb", "0xc"
ROUND = SimpleNamespace(opening=b"\1" * 32)
ENTRY = RollEntry(ClientIndex(0), ALICE, b"\2" * 32, b"\3" * 32)
SUCCESSOR, HONEST = 0, 1


class HandingOver(Referees):
    """One seat's side of a dispute."""

    def __init__(self, seat, store):
        messages = SimpleNamespace(seat=lambda round_: seat)
        super().__init__(SimpleNamespace(messages=messages, store=store), None)

    def _keys(self, *of):
        return HandedKeys(b"\4" * 32, b"\5" * 32)


@pytest.fixture
def seats(tmp_path):
    """The honest seats in the second hearing: of the successor, and of who was in the first one."""
    states = [State(tmp_path / f"{seat}.sqlite", "a member", SCHEMA) for seat in range(2)]
    stores = [MemberStore(state) for state in states]
    for store in stores:
        store.keep_roll(ROUND.opening, [ENTRY])
    yield [HandingOver(seat, store) for seat, store in enumerate(stores)]
    for state in states:
        state.close()


def handed(seat, referee, *components):
    return seat._hand_over(ROUND, referee, {ALICE: components}, {ALICE: b"\6" * 32})


def test_honest_seats_want_the_same_of_the_next_referee(seats):
    first = handed(seats[HONEST], STANDBY, 0, 1, 2)
    assert {each.component for each in first.keys} == {0, 1}, "a referee sees no third component"
    (wanted,) = agreed_wanted([handed(seat, NEXT, 2) for seat in seats])
    assert wanted.component == 2


def test_honest_seats_differ_if_all_referees_are_counted_together(seats, monkeypatch):
    """The defence off: the bad member can lie about the third component for ever."""
    separately = MemberStore.may_show
    monkeypatch.setattr(
        MemberStore,
        "may_show",
        lambda store, opening, member, *of: separately(store, opening, "all", *of),
    )
    handed(seats[HONEST], STANDBY, 0, 1, 2)
    assert agreed_wanted([handed(seat, NEXT, 2) for seat in seats]) == []
