"""Requests of a member to its SPU process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from opfl_chain.mpc.session.party_config import PartyConfig


@dataclass(frozen=True)
class Warm:
    """Reply with nothing, to show that the process has started."""


@dataclass(frozen=True)
class Join:
    """Meet the peers and connect."""

    config: PartyConfig
    audit: str
    seconds: float
    """Duration of the whole session, from `started`."""
    started: float
    join_seconds: float
    stall_seconds: float


@dataclass(frozen=True)
class Call:
    """Run a procedure. Reply: its result."""

    procedure: str
    """`module:name`."""
    arguments: dict[str, Any]
    """Arguments by name, checked against the procedure's annotations."""


@dataclass(frozen=True)
class Leave:
    """Leave the session. Reply: `Left`."""


@dataclass(frozen=True)
class Left:
    """Payload bytes that were sent to the peers during the session."""

    sent_bytes: int


Request = Warm | Join | Call | Leave
