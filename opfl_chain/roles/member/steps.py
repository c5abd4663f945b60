"""Steps in which members tell each other something, so that all honest ones hear the same.

A step has two parts. Each member says its own, and then what it heard of all: `protocol.echo` says
what counts. A part ends when everything has been heard, or at its block. A bound step is over
without the second part for whoever has heard of all what they had committed to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from opfl_chain.protocol.echo import (
    Bound,
    Common,
    Echo,
    Signed,
    common,
    echo_of,
    heard_in,
    is_concluded,
    lacking_seats,
    missing_bodies,
)
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.identifiers import Address
from opfl_chain.roles.member.messages import Messages
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.node import Moment
from opfl_chain.roles.view.records import RoundView

Convict = Callable[[RoundView, Address, int, tuple[Signed, Signed]], None]


@dataclass(frozen=True)
class StepEnds:
    """The blocks at which the two parts of a step end."""

    said: int
    echoed: int


def parts_of(start: int, end: int, count: int) -> list[int]:
    """Cut the blocks of a phase into parts; return the block at which each ends."""
    return [start + (end - start) * (part + 1) // count for part in range(count)]


class Steps:
    """One member's part in all steps."""

    def __init__(self, store: MemberStore, messages: Messages, convict: Convict) -> None:
        """`convict` is told of a member that signed two messages for one slot."""
        self._store = store
        self._messages = messages
        self._convict = convict

    def take(
        self,
        round_: RoundView,
        slot: int,
        ends: StepEnds,
        now: Moment,
        own: Callable[[], bytes],
    ) -> Common | None:
        """Take part in a step, and return what all have said, or None while it is not over.

        `own` makes our message; it is asked once, the message is stored before it is sent.
        """
        said = self._say(round_, slot, ends, now, own)
        if not self._echo(round_, slot, ends, now):
            return None
        return self._conclude(round_, slot, ends, now, said)

    def take_bound(
        self,
        round_: RoundView,
        slot: int,
        ends: StepEnds,
        now: Moment,
        own: Callable[[], bytes],
        bound: Bound,
    ) -> Common | None:
        """Take part in a step in which members say what they have committed to before.

        It is over as soon as all of that is here. Otherwise it goes as any other step does.
        """
        said = self._say(round_, slot, ends, now, own)
        if self._store.concluded(round_.opening, slot) is None and not self._echo_bound(
            round_, slot, ends, now, bound
        ):
            return None
        return self._conclude(round_, slot, ends, now, said, bound)

    def _say(
        self,
        round_: RoundView,
        slot: int,
        ends: StepEnds,
        now: Moment,
        own: Callable[[], bytes],
    ) -> Signed:
        """Make our message if it is not made, and send it to who has not got it."""
        said = self._messages.own(round_, slot)
        if said is None:
            self._note_lateness(round_, slot, now.head >= ends.said)
            said = self._messages.say(round_, slot, own())
        self._messages.tell(round_, slot, said)
        return said

    def _conclude(
        self,
        round_: RoundView,
        slot: int,
        ends: StepEnds,
        now: Moment,
        said: Signed,
        bound: Bound | None = None,
    ) -> Common | None:
        """Return the common view once all echoes are here, or the time for them is over."""
        counted = self._store.concluded(round_.opening, slot)
        echoes = self._echoes(round_, slot)
        seat = self._messages.seat(round_)
        if counted is None:
            if not is_concluded(seat, echoes):
                is_over = now.has_come(ends.echoed)
                if bound is not None or not is_over:
                    # Whoever ended a bound step without sending its echo serves it.
                    self._messages.ask_all(round_, echo_of(slot))
                    echoes = self._echoes(round_, slot)
                if not is_over and not is_concluded(seat, echoes):
                    return None
            self._complete(round_, slot, echoes)
            self._store.keep_concluded(round_.opening, slot, echoes)
            counted = set(echoes)
        echoes = {each: echo for each, echo in echoes.items() if each in counted}
        found = common(seat, said.body, echoes, self._bodies(round_, slot), bound)
        for author, two in found.equivocators.items():
            self._convict(round_, self._messages.seats(round_)[author], slot, two)
        return replace(found, in_time=not self._store.is_late(round_.opening, slot))

    def _note_lateness(self, round_: RoundView, slot: int, is_late: bool) -> None:
        """Note that we come too late to a step, if we do: then we blame nobody for it.

        Members that were all held up come back at once, and each concludes before it hears others.
        """
        if is_late:
            self._store.keep_late(round_.opening, slot)

    def _echo(self, round_: RoundView, slot: int, ends: StepEnds, now: Moment) -> bool:
        """Say what we heard, once we heard everyone or the time is over; return whether we did."""
        echo = self._messages.own(round_, echo_of(slot))
        if echo is None:
            heard, everyone = self._heard(round_, slot), len(self._messages.seats(round_))
            if len(heard) < everyone and not now.has_come(ends.said):
                self._messages.ask_all(round_, slot)
                heard = self._heard(round_, slot)
                if len(heard) < everyone:
                    return False
            self._note_lateness(round_, slot, now.head >= ends.echoed)
            echo = self._messages.say(round_, echo_of(slot), Echo.of(heard).encode())
        self._messages.tell(round_, echo_of(slot), echo)
        return True

    def _echo_bound(
        self, round_: RoundView, slot: int, ends: StepEnds, now: Moment, bound: Bound
    ) -> bool:
        """Make our echo, and send it only if something is lacking when the first part is over.

        A peer may lack what we have: it finds our echo here, stored before the step is over for us.
        Who comes late sends it in any case: others may be about to conclude.
        """
        echo = self._messages.own(round_, echo_of(slot))
        if echo is None:
            seat, heard = self._messages.seat(round_), self._heard(round_, slot, bound)
            if lacking := lacking_seats(seat, heard, bound):
                self._messages.ask_both(round_, slot, {each: bound[each] for each in lacking})
                heard = self._heard(round_, slot, bound)
                if lacking_seats(seat, heard, bound) and not now.has_come(ends.said):
                    return False
            self._note_lateness(round_, slot, now.head >= ends.echoed)
            echo = self._messages.say(round_, echo_of(slot), Echo.of(heard).encode())
            if now.head < ends.said:
                self._store.keep_concluded(round_.opening, slot, [seat])
                return True
        self._messages.tell(round_, echo_of(slot), echo)
        return True

    def _heard(self, round_: RoundView, slot: int, bound: Bound | None = None) -> dict[int, bytes]:
        """Return the message of every seat that counts as heard, our own included."""
        seats = range(len(self._messages.seats(round_)))
        kept = {seat: self._messages.kept(round_, slot, seat) for seat in seats}
        return heard_in(kept, bound)

    def _echoes(self, round_: RoundView, slot: int) -> dict[int, Echo]:
        """The echoes that we have, by seat; one that cannot be read says that nothing was heard."""
        found = {}
        for seat, body in self._heard(round_, echo_of(slot)).items():
            try:
                found[seat] = Echo.decode(body)
            except ProtocolError:
                found[seat] = Echo.of({})
        return found

    def _complete(self, round_: RoundView, slot: int, echoes: dict[int, Echo]) -> None:
        """Fetch what others heard and we did not, from who heard it."""
        seats, bodies = self._messages.seats(round_), self._bodies(round_, slot)
        wanted = missing_bodies(self._messages.seat(round_), echoes, bodies)
        for (author, content_hash), teller in wanted.items():
            self._messages.ask(round_, seats[teller], slot, author, content_hash)

    def _bodies(self, round_: RoundView, slot: int) -> dict[tuple[int, bytes], Signed]:
        return {
            (seat, each.hash): each
            for seat in range(len(self._messages.seats(round_)))
            for each in self._messages.kept(round_, slot, seat)
        }
