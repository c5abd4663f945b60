"""Whose certificate is whose, in mutual TLS between members.

One authority signs the members' certificates. Each certificate has the DNS name `member-0`,
`member-1` or `member-2`, so that no member can pass for another: a member that is two of the three
would learn every secret.
"""

from __future__ import annotations

from opfl_chain.mpc.ranks import Rank


def certificate_name(rank: Rank) -> str:
    """The DNS name in a member's certificate."""
    return f"member-{rank}"
