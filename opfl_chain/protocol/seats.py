"""Changes of seats: a function of what the chain shows and members saw together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from opfl_chain.protocol.identifiers import Address


@dataclass(frozen=True)
class DueChange:
    """A standby that takes a seat."""

    seat: int
    standby: Address


@dataclass(frozen=True)
class PastChange:
    """A change of seats on chain: who had the seats before, and which of them was given up."""

    seats: tuple[Address, ...]
    seat: int

    @property
    def left(self) -> Address:
        """The member that gave up its seat."""
        return self.seats[self.seat]


@dataclass(frozen=True)
class Suspicion:
    """Members that may have made meetings fail, if one member did it."""

    suspects: frozenset[Address] = frozenset()
    """Members that were in every meeting that failed since a member was last excluded."""
    excluded: frozenset[Address] = frozenset()
    """Members that were the only suspect."""

    def after_failure(self, seats: Iterable[Address]) -> Suspicion:
        """Return who is suspected after a meeting among these seats has failed.

        Those who were not there are cleared. If that clears everyone, suspicion starts anew.
        """
        there = frozenset(seats)
        return Suspicion(self.suspects & there or there, self.excluded)

    def after_change(self, left: Address) -> Suspicion:
        """Return who is suspected after a suspect has left: the only one is excluded."""
        if self.suspects == {left}:
            return Suspicion(excluded=self.excluded | {left})
        return self


def suspicion_of(history: Iterable[PastChange], at_fault: Collection[Address]) -> Suspicion:
    """Return what changes of seats tell about meetings that failed.

    A member that left without a fault left because a meeting among the seats had failed.
    """
    found = Suspicion()
    for each in history:
        if each.left not in at_fault:
            found = found.after_failure(each.seats).after_change(each.left)
    return found


def due_change(
    seats: Sequence[Address],
    bench: Sequence[Address],
    at_fault: Collection[Address],
    history: Iterable[PastChange] = (),
    failed: bool = False,
) -> DueChange | None:
    """Return the change that is due, if there is one.

    The first seat of a member at fault goes to the bench, or, after a meeting among these seats
    that ``failed`` though nobody was away, that of the first suspect. ``bench`` are those of the
    roster who have staked and have no seat, in their order. Who was at fault gets no seat, and who
    was excluded only if nobody else is left: honest members may have been, whose machines failed.
    """
    known = suspicion_of(history, at_fault)
    free = [seat for seat, member in enumerate(seats) if member in at_fault]
    if not free and failed:
        suspects = known.after_failure(seats).suspects
        free = [seat for seat, member in enumerate(seats) if member in suspects]
    fit = [each for each in bench if each not in at_fault]
    fit = [each for each in fit if each not in known.excluded] or fit
    return DueChange(free[0], fit[0]) if free and fit else None
