"""The three members and which components they hold."""

from __future__ import annotations

from typing import Final, TypeAlias

MEMBERS: Final = 3

Rank: TypeAlias = int
"""0, 1 or 2. Member r holds components r and r + 1 modulo 3 of every secret."""


def peers_of(rank: Rank) -> tuple[Rank, Rank]:
    """The member after and the member before."""
    return (rank + 1) % MEMBERS, (rank - 1) % MEMBERS


def holders_of(component: int) -> tuple[Rank, Rank]:
    """Who holds a component: as its first, and as its second."""
    return component % MEMBERS, (component - 1) % MEMBERS
