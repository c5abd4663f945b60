"""When a client cheats."""

import pytest

from opfl_chain.demo.cheating import cheats_in

ALL = range(6)


@pytest.mark.parametrize(
    ("cheat", "took_part", "rounds"),
    [
        (None, ALL, []),
        ("amplify:10", ALL, [0, 1, 2, 3, 4, 5]),
        ("poison", ALL, [0, 1, 2, 3, 4, 5]),
        ("wrong-opening", ALL, [0, 1, 2, 3, 4, 5]),
        ("reuse:2", ALL, [1, 3, 5]),
        ("reuse:3", ALL, [1, 2, 4, 5]),
        ("reuse:3", [0, 4], [4]),
    ],
)
def test_rounds_in_which_a_client_cheats(cheat, took_part, rounds):
    assert [n for n in ALL if cheats_in(cheat, n, took_part)] == rounds


def test_who_reuses_needs_a_gradient_first():
    """The first round that it is in cannot be a cheat, whatever its number."""
    assert not cheats_in("reuse:2", 1, [1, 2, 3])
    assert cheats_in("reuse:2", 3, [1, 2, 3])
