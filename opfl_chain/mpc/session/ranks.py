"""The three members and which components they hold."""

from __future__ import annotations

from typing import Final, TypeAlias

MEMBERS: Final = 3

Rank: TypeAlias = int
"""0, 1 or 2. Member r holds components r and r + 1 modulo 3 of every secret."""


def peers_of(rank: Rank) -> tuple[Rank, Rank]:
    """Return the member after and the member before."""
    return (rank + 1) % MEMBERS, (rank - 1) % MEMBERS


def certificate_name(rank: Rank) -> str:
    """Return the DNS name in a member's certificate."""
    return f"member-{rank}"
