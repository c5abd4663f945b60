"""Echoes: two honest members get the same view, whatever the third does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opfl_chain.protocol.echo import (
    Common,
    Echo,
    Signed,
    Slot,
    common,
    echo_of,
    heard_in,
    is_concluded,
    lacking_seats,
    missing_bodies,
    readable,
    slot_number,
)
from opfl_chain.protocol.errors import MessageError, ProtocolError
from opfl_chain.protocol.roll import Listed

BODIES = {0: b"from 0", 1: b"from 1", 2: b"from 2"}
TWIN = b"from the liar, to the other"
Heard = Mapping[int, bytes]


def signed(*bodies: tuple[int, bytes]) -> dict[tuple[int, bytes], Signed]:
    return {
        (seat, each.hash): each for seat, body in bodies for each in [Signed(body, b"signature")]
    }


def liars_ways() -> Iterator[tuple[bytes | None, bytes | None, int, int]]:
    """Messages of a liar to each of two honest members, and the echo that it sends to each.

    Echoes: none, the truth, that it heard nobody, that it heard its own other message.
    """
    yield from product((None, BODIES[2], TWIN), (None, BODIES[2], TWIN), range(4), range(4))


def echo_of_liar(way: int) -> Echo | None:
    heard: list[Heard | None] = [None, BODIES, {}, {0: BODIES[0], 1: BODIES[1], 2: TWIN}]
    chosen = heard[way]
    return Echo.of(chosen) if chosen is not None else None


def view_of(own: int, other: int, told: bytes | None, told_other: bytes | None, way: int) -> Common:
    """One honest member's view. Honest members hear each other, and show what they echo."""
    mine = {own: BODIES[own], other: BODIES[other]} | ({2: told} if told else {})
    theirs = {own: BODIES[own], other: BODIES[other]} | ({2: told_other} if told_other else {})
    echoes = {own: Echo.of(mine), other: Echo.of(theirs)}
    from_liar = echo_of_liar(way)
    if from_liar is not None:
        echoes[2] = from_liar
    shown = signed(*mine.items(), *theirs.items(), (2, BODIES[2]), (2, TWIN))
    return common(own, BODIES[own], echoes, shown)


def test_two_honest_members_agree_whatever_the_third_does() -> None:
    outcomes = set()
    for to_first, to_second, first_way, second_way in liars_ways():
        first = view_of(0, 1, to_first, to_second, first_way)
        second = view_of(1, 0, to_second, to_first, second_way)
        assert first == second
        assert (first.values[0], first.values[1]) == (BODIES[0], BODIES[1])
        assert set(first.equivocators) <= {2}
        said = {each for each in (to_first, to_second) if each is not None}
        assert first.values[2] == (next(iter(said)) if len(said) == 1 else None)
        assert (2 in first.equivocators) == (len(said) == 2)
        assert first.absent == (() if said else (2,))
        outcomes.add((first.values[2], bool(first.equivocators)))
    assert len(outcomes) == 4  # either message, none, both


def test_without_an_echo_a_liar_splits_the_honest_members() -> None:
    """The defence off: each believes what it heard itself."""
    alone = [
        common(own, BODIES[own], {own: Echo.of({**BODIES, 2: told})}, signed((2, told)))
        for own, told in ((0, BODIES[2]), (1, TWIN))
    ]
    assert alone[0].values[2] != alone[1].values[2]
    assert not alone[0].equivocators and not alone[1].equivocators


def test_a_message_after_the_echo_does_not_count() -> None:
    """A liar speaks to one member when both have sent their echoes."""
    silent = {0: BODIES[0], 1: BODIES[1]}
    echoes = {0: Echo.of(silent), 1: Echo.of(silent)}
    late = signed(*silent.items(), (2, BODIES[2]))
    first = common(0, BODIES[0], echoes, late)
    second = common(1, BODIES[1], echoes, signed(*silent.items()))
    assert first.values == second.values == {0: BODIES[0], 1: BODIES[1], 2: None}
    assert first.absent == second.absent == (2,)
    # The defence off: who still listens after its echo, and so believes that it heard it in time.
    listening = {**echoes, 0: Echo.of(BODIES)}
    assert common(0, BODIES[0], listening, late).values[2] == BODIES[2]


def test_what_an_author_says_it_heard_of_itself_does_not_count() -> None:
    silent = {0: BODIES[0], 1: BODIES[1]}
    echoes = {0: Echo.of(silent), 1: Echo.of(silent), 2: Echo.of(BODIES)}
    assert common(0, BODIES[0], echoes, signed(*BODIES.items())).absent == (2,)


def test_a_message_without_its_author_s_signature_does_not_count() -> None:
    """A liar's echo names another message of an honest member, which it cannot show."""
    echoes = {0: Echo.of(BODIES), 1: Echo.of(BODIES), 2: Echo.of({**BODIES, 1: TWIN})}
    found = common(0, BODIES[0], echoes, signed(*BODIES.items()))
    assert found.values == BODIES and not found.equivocators


def test_messages_that_count_and_are_missing_are_fetched_from_who_echoed_them() -> None:
    mine = {0: BODIES[0], 1: BODIES[1]}
    echoes = {0: Echo.of(mine), 1: Echo.of(BODIES), 2: Echo.of({**BODIES, 2: TWIN})}
    (wanted,) = signed((2, BODIES[2]))
    assert missing_bodies(0, echoes, signed(*mine.items())) == {wanted: 1}
    assert missing_bodies(0, echoes, signed(*BODIES.items())) == {}


BOUND = {seat: body.__eq__ for seat, body in BODIES.items()}
OTHER_TWIN = b"from the liar, which does not fit either"
TOLD: tuple[tuple[bytes, ...], ...] = (
    (),
    (BODIES[2],),
    (TWIN,),
    (OTHER_TWIN,),
    (BODIES[2], TWIN),
    (TWIN, BODIES[2]),
)
"""Messages of a liar to an honest member before this one echoes or ends the step, in order."""


def bound_views(
    told: Sequence[Sequence[bytes]], late: Sequence[Sequence[bytes]], *, serves: bool = True
) -> list[Common]:
    """Views of two honest members that cannot ask each other for words in time, but for echoes."""
    heard = []
    for messages in told:
        kept = {0: [BODIES[0]], 1: [BODIES[1]], 2: list(messages)}
        signed_ = {seat: [Signed(body, b"") for body in each] for seat, each in kept.items()}
        heard.append(heard_in(signed_, BOUND))
    ended = [not lacking_seats(own, heard[own], BOUND) for own in (0, 1)]
    found = []
    for own, other in ((0, 1), (1, 0)):
        echoes = {own: Echo.of(heard[own])}
        shown = [(2, each) for each in (*told[own], *late[own])]
        if not ended[own]:
            echoes[2] = Echo.of(BODIES)
            if serves or not ended[other]:
                echoes[other] = Echo.of(heard[other])
                shown += [(2, heard[other][2])] if 2 in heard[other] else []
        bodies = signed((0, BODIES[0]), (1, BODIES[1]), *shown)
        found.append(common(own, BODIES[own], echoes, bodies, BOUND))
    return found


@pytest.mark.parametrize("to_first", TOLD)
@pytest.mark.parametrize("to_second", TOLD)
def test_honest_members_agree_on_words_that_bind_whoever_ended_early(
    to_first: tuple[bytes, ...], to_second: tuple[bytes, ...]
) -> None:
    told = to_first, to_second
    for late in product(((), (BODIES[2],), (TWIN,)), repeat=2):
        first, second = bound_views(told, late)
        assert first.values == second.values
        assert {first.values[0], second.values[1]} == {BODIES[0], BODIES[1]}
        heard = {body for each in told for body in each[:1]}
        if any(BODIES[2] in each for each in told):
            assert first.values[2] == BODIES[2]
        else:
            assert first.values[2] == (heard.pop() if len(heard) == 1 else None)
        for view, each, after in zip((first, second), told, late, strict=True):
            assert set(view.equivocators) <= {2}
            assert len({*each, *after}) < 2 or 2 in view.equivocators


def test_bound_words_with_a_defence_off_split_the_honest_members() -> None:
    one_has_them = (BODIES[2],), ()
    first, second = bound_views(one_has_them, ((), ()), serves=False)
    assert first.values[2] != second.values[2]
    # Who ended early has one message alone; as in other slots two would count as nothing.
    echoes = {0: Echo.of(BODIES), 1: Echo.of({**BODIES, 2: TWIN})}
    shown = signed(*BODIES.items(), (2, TWIN))
    assert common(1, BODIES[1], echoes, shown, BOUND).values[2] == BODIES[2]
    assert common(1, BODIES[1], echoes, shown).values[2] is None


def test_seat_that_is_not_bound_neither_holds_a_step_up_nor_says_anything() -> None:
    bound = {seat: BOUND[seat] for seat in (0, 1)}
    assert lacking_seats(0, {0: BODIES[0], 1: BODIES[1]}, bound) == ()
    assert lacking_seats(0, {0: BODIES[0]}, bound) == (1,)
    assert lacking_seats(0, {0: b"", 1: TWIN}, bound) == (1,)
    found = common(0, BODIES[0], {0: Echo.of(BODIES)}, signed(*BODIES.items()), bound)
    assert found.values == {**BODIES, 2: None}


def test_a_step_ends_when_all_echoes_are_here() -> None:
    echo = Echo.of(BODIES)
    assert is_concluded(0, {0: echo, 1: echo, 2: echo})
    assert not is_concluded(0, {0: echo, 1: echo})
    assert not is_concluded(0, {1: echo, 2: echo})


def test_what_cannot_be_read_is_as_if_it_had_not_been_said() -> None:
    values = {0: Listed({1: bytes(32)}).encode(), 1: b"nonsense", 2: None}
    found = readable(values, lambda seat, body: Listed.decode(body, 5))
    assert found == {0: Listed({1: bytes(32)})}


def test_slots_of_sessions_never_meet() -> None:
    numbers = [slot_number(slot, attempt) for attempt in range(4) for slot in Slot]
    echoes = [echo_of(number) for number in numbers]
    assert len({*numbers, *echoes}) == 2 * len(numbers)
    with pytest.raises(MessageError, match="slot 2 is an echo"):
        echo_of(echo_of(Slot.LIST))
    with pytest.raises(ProtocolError):
        slot_number(Slot.LIST, 1 << 24)


@given(st.binary(max_size=120))
def test_an_echo_is_read_back_or_refused(data: bytes) -> None:
    try:
        echo = Echo.decode(data)
    except MessageError:
        assert len(data) != 96
        return
    assert echo.encode() == data
