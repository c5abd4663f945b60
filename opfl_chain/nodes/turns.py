"""Who does what anyone may do, so that not all do it at once and somebody does."""

from __future__ import annotations

from opfl_chain.mpc.ranks import MEMBERS

STAGGER_BLOCKS = 4
"""How long each waits for the one before."""


def is_due(place: int, since: int, head: int) -> bool:
    """Whether it is the turn of whoever has this place, of what could be done since a block."""
    return head >= since + place * STAGGER_BLOCKS


def place_of(rank: int, number: int) -> int:
    """A member's place in a round: another one is first in every round."""
    return (rank - number) % MEMBERS
