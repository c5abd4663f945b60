"""A referee recomputes what two seats want, all of it, and never a whole contribution."""

from collections.abc import Iterable

from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.referee import HandedKeys, HandOver, Wanted, agreed_wanted


def wanted(client: int, component: int) -> Wanted:
    return Wanted(ClientIndex(client), component, bytes([client]) * 32)


def hand_over(*places: Wanted) -> HandOver:
    return HandOver({each: HandedKeys() for each in places})


ALL = [wanted(client, component) for client in (0, 1) for component in (0, 1)]


def common_part(handed: Iterable[HandOver]) -> set[Wanted]:
    """The rule that is not built: whatever two seats have in common."""
    first, second = handed
    return set(first.keys) & set(second.keys)


def test_what_two_seats_want_is_recomputed() -> None:
    assert agreed_wanted([hand_over(*ALL), hand_over(*ALL)]) == ALL


def test_one_seat_is_not_enough() -> None:
    assert agreed_wanted([hand_over(*ALL)]) == []


def test_a_seat_that_leaves_a_client_out_changes_nothing() -> None:
    fewer = hand_over(*ALL[:2])
    assert common_part([fewer, hand_over(*ALL)]) == set(ALL[:2])  # a sum of fewer clients
    assert agreed_wanted([fewer, hand_over(*ALL)]) == []
    assert agreed_wanted([fewer, hand_over(*ALL), hand_over(*ALL)]) == ALL


def test_a_whole_contribution_is_never_wanted() -> None:
    whole = [wanted(0, component) for component in range(3)]
    assert agreed_wanted([hand_over(*whole, *ALL[2:])] * 2) == ALL[2:]
