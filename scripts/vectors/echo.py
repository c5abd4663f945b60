"""Messages of members, their echoes, and what follows from them."""

from vectors.specification import spec
from vectors.values import Vector

A, B, C, TWIN, LATE = b"from 0", b"from 1", b"from 2", b"from 2, again", b"from 2, late"
Heard = dict[int, dict[int, bytes]]
"""Messages that each seat heard, by author."""


def echo_case(
    why: str,
    own_seat: int,
    heard: Heard,
    shown: dict[int, list[bytes]],
    fitting: dict[int, bytes] | None = None,
) -> Vector:
    """One member's view. `heard` are those whose echoes it has, `fitting` fits a bound slot."""
    echoes = {seat: spec.echo_of(each) for seat, each in heard.items()}
    own = heard[own_seat].get(own_seat)
    bound = {seat: body.__eq__ for seat, body in fitting.items()} if fitting is not None else None
    values, equivocators = spec.common_view(own_seat, own, echoes, shown, bound)
    early = bound is not None and spec.ends_early(own_seat, heard[own_seat], bound)
    more: Vector = {}
    if fitting is not None:
        more = {"endsEarly": early, "fitting": [fitting.get(seat, b"") for seat in range(3)]}
    return {
        **more,
        "absent": [s for s in range(3) if values[s] is None and s not in equivocators],
        "echoes": [b"".join(each) for each in echoes.values()],
        "echoSeats": list(echoes),
        "equivocators": sorted(equivocators),
        "own": own or b"",
        "ownSeat": own_seat,
        "said": [values[seat] or b"" for seat in range(3)],
        "shown": [shown.get(seat, []) for seat in range(3)],
        "why": why,
    }


def echo() -> Vector:
    everything = {0: A, 1: B, 2: C}
    cases = [
        echo_case("all heard all", 0, dict.fromkeys(range(3), everything), {1: [B], 2: [C]}),
        echo_case("2 was away", 0, {0: {0: A, 1: B}, 1: {0: A, 1: B}}, {1: [B]}),
        echo_case("1 alone heard 2", 0, {0: {0: A, 1: B}, 1: everything}, {1: [B], 2: [C]}),
        echo_case(
            "2 says two things",
            0,
            {0: {**everything, 2: TWIN}, 1: everything},
            {1: [B], 2: [C, TWIN]},
        ),
        echo_case("2 echoes itself alone", 0, {0: {0: A, 1: B}, 2: everything}, {1: [B], 2: [C]}),
        echo_case("2 was late", 0, {0: {0: A, 1: B}, 1: {0: A, 1: B}}, {1: [B], 2: [LATE]}),
        echo_case("a message that nobody shows", 0, dict.fromkeys(range(2), everything), {1: [B]}),
        echo_case("2 invents another of 1", 0, {0: everything, 2: {1: C}}, {1: [B], 2: [C]}),
        echo_case("we were away", 1, {1: {0: A}, 0: {0: A, 2: C}}, {0: [A], 2: [C]}),
    ]
    silent = {0: A, 1: B}
    doubled = {1: [B], 2: [C, TWIN]}
    other = {**everything, 2: TWIN}
    bound_cases = [
        echo_case("all fits", 0, {0: everything}, {1: [B], 2: [C]}, everything),
        echo_case("all fits beside another", 0, {0: everything}, doubled, everything),
        echo_case("2 is not bound", 0, {0: everything}, {1: [B], 2: [C]}, silent),
        echo_case("2 is not bound, and silent", 0, {0: silent}, {1: [B]}, silent),
        echo_case("2 was away", 0, {0: silent, 1: silent}, {1: [B]}, everything),
        echo_case("1 ended with 2", 0, {0: silent, 1: everything}, {1: [B], 2: [C]}, everything),
        echo_case("1 ended, we have another", 0, {0: other, 1: everything}, doubled, everything),
        echo_case("2 does not fit", 0, {0: other, 1: other}, {1: [B], 2: [TWIN]}, everything),
        echo_case(
            "2 does not fit, twice",
            0,
            {0: other, 1: {**silent, 2: LATE}},
            {1: [B], 2: [TWIN, LATE]},
            everything,
        ),
        echo_case("2 fits too late", 0, {0: other, 1: other}, {1: [B], 2: [TWIN, C]}, everything),
        echo_case(
            "2 alone names what fits",
            0,
            {0: silent, 1: silent, 2: everything},
            {1: [B], 2: [C]},
            everything,
        ),
        echo_case("our own words do not fit", 2, {2: other}, {0: [A], 1: [B]}, everything),
    ]
    return {
        "boundCases": bound_cases,
        "cases": cases,
        "keptFitting": C,
        "keptHeard": [
            spec.heard_of(each, C.__eq__) for each in ([C], [TWIN], [TWIN, C], [C, TWIN])
        ],
        "keptMessages": [[C], [TWIN], [TWIN, C], [C, TWIN]],
        "slotNames": list(spec.SLOTS),
        "slots": list(spec.SLOTS.values()),
        "slotsOfAttempt3": [spec.slot_number(name, 3) for name in spec.SLOTS],
    }
