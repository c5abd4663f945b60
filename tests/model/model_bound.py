"""A bound step of the model: members say what they committed to, and end it without an echo."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from model_choices import Choose
from model_world import Rules, State, Values, fail, penalise

from opfl_chain.protocol.echo import Bound, Common, Echo, Signed, heard_in, lacking_seats
from opfl_chain.protocol.hashing import keccak256

_PATTERNS: Final = (
    "both",
    "two",
    "both, in other orders",
    "first",
    "second",
    "first at last",
    "second at last",
    "and late",
    "late to first",
    "late to second",
)
"""To whom a message goes: to both honest seats; another one to the second; this one and another to
both, which come in another order to the second; to one of them in time for the other one to ask for
it; to one of them when the other one has echoed; to both, and another one to the first after its
echo; to one of them after its echo."""


def bound_step(
    state: State,
    choose: Choose,
    rules: Rules,
    label: str,
    own: Mapping[int, bytes],
    options: Sequence[bytes],
    is_bound: bool,
) -> tuple[State, Values, bool]:
    """Have all members say what they have committed to; return what `model_world.step` does.

    The first one of two ``options`` fits the report of the byzantine member, if that ``is_bound``.
    """
    rogue, said, ways = state.rogue_seat, None, _PATTERNS[:1]
    if rogue is not None:
        said = choose(label, (None, *options))
        if said is not None and len(own) > 1:
            ways = _PATTERNS if state.attempt == 0 else _PATTERNS[:2]
    other = options[0] if said == options[1] else options[1]
    ends: dict[_End, str] = {}
    for pattern in ways:
        end = _heard(
            rules.common,
            rules.fits,
            rules.serves_echo,
            rogue,
            tuple(sorted(own.items())),
            options[0] if is_bound else None,
            _arrivals(tuple(own), said, other, pattern),
        )
        ends.setdefault(end, pattern)
    # Ways that end alike lead to the same state: one of them is enough.
    chosen = choose(f"{label}, to", tuple(ends.values()))
    same, values, doubles = next(end for end, pattern in ends.items() if pattern == chosen)
    if not same:
        state = fail(state, "AGREE honest members hear different words")
    if doubles and rogue is not None:
        state = penalise(state, state.seats[rogue], "equivocation")
    return state, dict(values), doubles


_End = tuple[bool, tuple[tuple[int, bytes | None], ...], bool]
"""Agreement of honest members; the values that count; and if one of them saw two messages."""
Arrivals = tuple[tuple[tuple[bytes, ...], ...], ...]
"""Messages of the byzantine member to each honest seat that is there: in time for others to ask for
them, when the others have echoed, and after the seat's own echo."""


def _arrivals(
    honest: Sequence[int], said: bytes | None, other: bytes, pattern: str
) -> tuple[Arrivals, ...]:
    nothing: Arrivals = ((), (), ())
    if said is None:
        return (nothing,) * len(honest)
    once, at_last, late = ((said,), (), ()), ((), (said,), ()), ((), (), (said,))
    found = {
        "both": (once, once),
        "two": (once, ((other,), (), ())),
        "both, in other orders": (((said, other), (), ()), ((other, said), (), ())),
        "first": (once, nothing),
        "second": (nothing, once),
        "first at last": (at_last, nothing),
        "second at last": (nothing, at_last),
        "and late": (((said,), (), (other,)), once),
        "late to first": (late, nothing),
        "late to second": (nothing, late),
    }[pattern]
    return found[: len(honest)]


@cache
def _heard(
    common: Callable[..., Common],
    fits: Callable[[bytes, bytes | None], bool],
    serves_echo: bool,
    rogue: int | None,
    own: tuple[tuple[int, bytes], ...],
    fitting: bytes | None,
    arrivals: tuple[Arrivals, ...],
) -> _End:
    """Return how a step ends for honest members."""
    honest = [seat for seat, _ in own]
    bound: dict[int, Callable[[bytes], bool]] = {seat: body.__eq__ for seat, body in own}
    if rogue is not None and fitting is not None:
        bound[rogue] = lambda body: fits(body, fitting)
    told = dict(zip(honest, arrivals, strict=True))
    got = {seat: list(told[seat][0]) for seat in honest}
    before = {seat: _heard_by(seat, own, rogue, got, bound) for seat in honest}
    for seat in honest:
        if rogue in lacking_seats(seat, before[seat], bound):
            # It asks the other one, which serves what it has.
            got[seat] += [before[each][rogue] for each in honest if rogue in before[each]]
    ended, echoes = set(), {}
    for seat in honest:
        got[seat] += told[seat][1]
        heard = _heard_by(seat, own, rogue, got, bound)
        echoes[seat] = Echo.of(heard)
        if not lacking_seats(seat, heard, bound):
            ended.add(seat)
    found = []
    for seat, body in own:
        known = {seat: echoes[seat]}
        if seat not in ended:
            known |= {each: echoes[each] for each in honest if serves_echo or each not in ended}
        signed = {(each, keccak256(text)): Signed(text, b"") for each, text in own}
        if rogue is not None:
            late = told[seat][2]
            # It echoes also a late message of its own.
            if seat not in ended:
                known[rogue] = Echo.of({rogue: late[0]} if late else {})
            named = {echo.of_author(rogue) for echo in known.values()}
            here = [*got[seat], *late]
            here += [text for texts in got.values() for text in texts if keccak256(text) in named]
            signed |= {(rogue, keccak256(text)): Signed(text, b"") for text in here}
        found.append(common(seat, body, known, signed, bound))
    same = all(each.values == found[0].values for each in found)
    values = tuple(sorted(found[0].values.items()))
    return same, values, any(each.equivocators for each in found)


def _heard_by(
    seat: int,
    own: tuple[tuple[int, bytes], ...],
    rogue: int | None,
    got: Mapping[int, Sequence[bytes]],
    bound: Bound,
) -> dict[int, bytes]:
    kept = {each: [Signed(body, b"")] for each, body in own}
    if rogue is not None:
        kept[rogue] = [Signed(body, b"") for body in got[seat]]
    return heard_in(kept, bound)
