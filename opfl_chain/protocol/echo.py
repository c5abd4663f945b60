"""Messages among members, in two steps: a message, and an echo of what was heard.

Every statement has a slot of its own and is signed. A member sends its message to both others; when
it has heard both, or the time of the step is over, it sends its echo, and ignores what comes later
in the slot. What a member other than the author echoes, and shows with the author's signature,
counts. So all honest members get the same values, whatever one liar among the three does.

In a bound slot each author has committed before to the one message that fits. Who has all of these
needs no echo of others, and sends none: it keeps its own for whoever lacks one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, TypeVar

from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.errors import MessageError, ProtocolError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.shares import HASH_BYTES
from opfl_chain.protocol.widths import unsigned

SEATS: Final = range(COMPONENTS)
NOTHING_HEARD: Final = bytes(HASH_BYTES)
ECHO_BYTES: Final = HASH_BYTES * COMPONENTS
SLOTS_PER_ATTEMPT: Final = 256
"""Later sessions of a round have slots of their own: two messages in one slot are equivocation."""

Value = TypeVar("Value")

Bound = Mapping[int, Callable[[bytes], bool]]
"""Tests of messages in a bound slot, by seat: at most one body passes, as the seat has committed to
it in the common view of an earlier slot. A seat that has not says nothing that counts."""


class Slot(IntEnum):
    """The statements of a member in a round. The echo of a slot is the next number."""

    LIST = 1
    """The contributions that it has."""
    COMPLAINTS = 3
    """Complaints about contributions that it cannot open."""
    ANSWERS = 5
    """The answers of audited clients that it has."""
    REPORT = 7
    """Findings about the answers, and commitments to its own words about them."""
    REVEAL = 9
    """The words that the report committed to."""
    SUM = 11
    """The hashes of its components of the sum."""
    REFEREE = 13
    """A standby's words on components that are disputed. It has no echo."""
    SUM_REFEREE = 15
    """A standby's hashes of components of the sum that are disputed. It has no echo."""


HAND_OVERS: Final = frozenset({Slot.REFEREE, Slot.SUM_REFEREE})
"""Slots of which seats send the referee keys of components: nobody else may read these."""
_KNOWN: Final = frozenset(Slot) | {slot + 1 for slot in frozenset(Slot) - HAND_OVERS}


def slot_number(slot: Slot, attempt: int = 0) -> int:
    """Return the number of a slot in a session of a round: 0 is the round itself."""
    return unsigned("slot", slot + SLOTS_PER_ATTEMPT * unsigned("attempt", attempt, 24), 32)


def is_hand_over(slot: int) -> bool:
    """Return whether seats say in a slot what a referee is to recompute, with keys."""
    return slot % SLOTS_PER_ATTEMPT in HAND_OVERS


def is_known(slot: int) -> bool:
    """Return whether anything is ever said in a slot."""
    return slot % SLOTS_PER_ATTEMPT in _KNOWN


def is_echo(slot: int) -> bool:
    """Return whether a slot is of echoes."""
    return slot % 2 == 0


def echo_of(slot: int) -> int:
    """Return the slot of the echo of what is said in a slot."""
    if is_echo(slot):
        raise MessageError(f"slot {slot} is an echo, which has no echo")
    return unsigned("slot", slot, 32) + 1


@dataclass(frozen=True)
class Signed:
    """A message in a slot, and its author's signature."""

    body: bytes
    signature: bytes = field(repr=False)

    @property
    def hash(self) -> bytes:
        """The content hash of the signed `MemberMessage`."""
        return keccak256(self.body)


@dataclass(frozen=True)
class Echo:
    """The hashes of the messages that a member heard in a slot, its own included, by seat."""

    heard: tuple[bytes, bytes, bytes]

    @classmethod
    def of(cls, bodies: Mapping[int, bytes]) -> Echo:
        """Make the echo of the messages that were heard, by seat of their authors."""
        first, second, third = (
            keccak256(bodies[seat]) if seat in bodies else NOTHING_HEARD for seat in SEATS
        )
        return cls((first, second, third))

    def encode(self) -> bytes:
        """Return the wire format."""
        return b"".join(self.heard)

    @classmethod
    def decode(cls, data: bytes) -> Echo:
        """Read an echo."""
        if len(data) != ECHO_BYTES:
            raise MessageError(f"an echo has {ECHO_BYTES} bytes, this one has {len(data):,}")
        first, second, third = (
            bytes(data[at : at + HASH_BYTES]) for at in range(0, ECHO_BYTES, HASH_BYTES)
        )
        return cls((first, second, third))

    def of_author(self, seat: int) -> bytes | None:
        """Return the hash of the message that was heard of an author, if any."""
        heard = self.heard[seat]
        return heard if heard != NOTHING_HEARD else None


@dataclass(frozen=True)
class Common:
    """The common view of a slot: what each member said, alike for all honest ones."""

    values: dict[int, bytes | None]
    """The message of each seat; None if it was away, or said two things."""
    equivocators: dict[int, tuple[Signed, Signed]]
    """Two messages of one author in the slot: its signatures prove it on chain."""
    in_time: bool = True
    """False if we came too late to tell whether others were away."""

    @property
    def absent(self) -> tuple[int, ...]:
        """The seats that said nothing, as far as we can tell."""
        return tuple(
            seat
            for seat, value in self.values.items()
            if self.in_time and value is None and seat not in self.equivocators
        )


def heard_in(kept: Mapping[int, Sequence[Signed]], bound: Bound | None = None) -> dict[int, bytes]:
    """Return what a member heard of each seat: its first message, or the one that fits.

    ``kept`` are the messages of each seat in a slot, in the order in which they came.
    """
    found: dict[int, bytes] = {}
    for seat, messages in kept.items():
        fits = (bound or {}).get(seat)
        fitting = [each for each in messages if fits is not None and fits(each.body)]
        if messages:
            found[seat] = (fitting or messages)[0].body
    return found


def lacking_seats(own_seat: int, heard: Mapping[int, bytes], bound: Bound) -> tuple[int, ...]:
    """Return the other seats whose fitting message in a bound slot is not here.

    If there is none, the step is over: whatever else is said cannot change its common view.
    """
    return tuple(
        seat
        for seat, fits in sorted(bound.items())
        if seat != own_seat and not (seat in heard and fits(heard[seat]))
    )


def common(
    own_seat: int,
    own_body: bytes | None,
    echoes: Mapping[int, Echo],
    bodies: Mapping[tuple[int, bytes], Signed],
    bound: Bound | None = None,
) -> Common:
    """Return what each member said, by what the members heard.

    ``echoes`` are ours and those that arrived, by seat. ``bodies`` are what has been shown with a
    valid signature of its author, by the author's seat and the hash. For an author count the
    messages that others than itself heard: exactly one is its word, two are equivocation, and none
    is absence. For ourselves our own message counts.

    In a bound slot the one of them that fits is the author's word, also beside another one. Then
    whatever two messages are shown are equivocation: who ended the step early echoed only one.
    """
    values: dict[int, bytes | None] = {}
    equivocators: dict[int, tuple[Signed, Signed]] = {}
    for author in SEATS:
        if author == own_seat:
            values[author] = own_body
            continue
        named = {echo.of_author(author) for seat, echo in echoes.items() if seat != author}
        shown = [bodies[author, each] for each in _sorted(named) if (author, each) in bodies]
        values[author] = _word(shown) if bound is None else _fitting(shown, bound.get(author))
        if bound is not None:
            shown = [each for (seat, _), each in sorted(bodies.items()) if seat == author]
        if len(shown) > 1:
            equivocators[author] = shown[0], shown[1]
    return Common(values, equivocators)


def _word(shown: Sequence[Signed]) -> bytes | None:
    return shown[0].body if len(shown) == 1 else None


def _fitting(shown: Sequence[Signed], fits: Callable[[bytes], bool] | None) -> bytes | None:
    if fits is None:
        return None
    return next((each.body for each in shown if fits(each.body)), _word(shown))


def missing_bodies(
    own_seat: int, echoes: Mapping[int, Echo], bodies: Mapping[tuple[int, bytes], Signed]
) -> dict[tuple[int, bytes], int]:
    """Return the messages that count and that we lack: author and hash, and whose echo names it."""
    wanted: dict[tuple[int, bytes], int] = {}
    for seat, echo in echoes.items():
        for author in SEATS:
            named = echo.of_author(author)
            if named is None or author in (seat, own_seat) or (author, named) in bodies:
                continue
            wanted[author, named] = seat
    return wanted


def is_concluded(own_seat: int, echoes: Mapping[int, Echo]) -> bool:
    """Return whether the echoes of all members are here, so that nobody need wait any longer."""
    return own_seat in echoes and len(echoes) == COMPONENTS


def readable(
    values: Mapping[int, bytes | None], decode: Callable[[int, bytes], Value]
) -> dict[int, Value]:
    """Decode what was said, by seat. What cannot be read is as if it had not been said."""
    found: dict[int, Value] = {}
    for seat, body in values.items():
        if body is None:
            continue
        try:
            found[seat] = decode(seat, body)
        except ProtocolError:
            continue
    return found


def _sorted(named: set[bytes | None]) -> list[bytes]:
    return sorted(each for each in named if each is not None)
