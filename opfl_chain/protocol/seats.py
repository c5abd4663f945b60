"""When a standby takes a seat: a function of what the chain shows, so that all members agree."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from opfl_chain.protocol.identifiers import Address


@dataclass(frozen=True)
class DueChange:
    """A standby that takes a seat."""

    seat: int
    standby: Address


def due_change(
    seats: Sequence[Address], bench: Sequence[Address], at_fault: Collection[Address]
) -> DueChange | None:
    """Return the change that is due: the first seat of a member at fault goes to the bench.

    ``bench`` are those of the roster who have staked and have no seat, in their order. Who was at
    fault before gets no seat.
    """
    fit = [each for each in bench if each not in at_fault]
    for seat, member in enumerate(seats):
        if member in at_fault and fit:
            return DueChange(seat, fit[0])
    return None
