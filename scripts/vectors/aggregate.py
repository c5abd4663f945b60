"""Sums of contributions, opened from their components."""

from vectors.made_up import made_up_words, words
from vectors.specification import is_refused, spec
from vectors.values import Vector


def sum_case(label: str, gradients: list[list[int]]) -> Vector:
    """Each member's components of every gradient and of the sum, and the opened sum."""
    shared = [spec.split(xs, *words(f"{label} seeds {i}", 2)) for i, xs in enumerate(gradients)]
    sums: list[list[int]] = [[], [], []]
    for rank in range(3):
        own, following = spec.held_by(rank)
        held = [(components[own], components[following]) for components in shared]
        for k, component in zip(
            (own, following), spec.sum_components(held, len(gradients)), strict=True
        ):
            assert sums[k] in ([], component)  # both holders agree
            sums[k] = component
    opened = spec.open_sum(sums)
    assert opened == [spec.signed(sum(xs)) for xs in zip(*gradients, strict=True)]
    return {
        "components": [[spec.ring_bytes(x) for x in components] for components in shared],
        "contributions": len(gradients),
        "hash": spec.aggregate_hash(opened),
        "parts": [spec.encode_parts((sums[r], sums[(r + 1) % 3])) for r in range(3)],
        "sums": [spec.ring_bytes(component) for component in sums],
        "words": spec.ring_bytes(opened),
    }


def aggregate() -> Vector:
    largest = spec.WORD_LIMIT - 1
    cases = [
        sum_case("two", [made_up_words(f"of two {i}", 5) for i in range(2)]),
        sum_case("seven", [made_up_words(f"of seven {i}", 3) for i in range(7)]),
        sum_case("one word", [[1], [-1]]),
        sum_case("largest", [[largest, -largest]] * 2),
        sum_case("wraps around", [[largest, -largest]] * 3),
    ]
    one = ([1], [2])
    for accepted in ([], [one], [one, ([1], [2, 3])], [one, ([1, 2], [2, 3])]):
        assert is_refused(spec.sum_components, accepted, 2), accepted
    for components in ([], [[1]] * 2, [[1]] * 4, [[1], [1], [1, 2]]):
        assert is_refused(spec.open_sum, components), components
    return {
        "agreements": [agreement(*case) for case in stated_cases()],
        "cases": cases,
        "hashOfNothing": spec.aggregate_hash([]),
    }


def stated_cases() -> list[tuple[str, dict[int, list[bytes]], dict[int, bytes]]]:
    """Statements about the components of a sum: of members by seat, of a referee by component."""
    h = words("component of a sum", 3)
    lie = words("lie about a sum", 2)
    honest = {seat: [h[k] for k in spec.held_by(seat)] for seat in range(3)}
    lying = {**honest, 1: [lie[0], h[2]]}
    return [
        ("all agree", honest, {}),
        ("one is away", {0: honest[0], 2: honest[2]}, {}),
        ("one is away, and a referee confirms", {0: honest[0], 2: honest[2]}, {1: h[1], 2: h[2]}),
        ("one is away, and one lies", {0: [lie[0], h[1]], 2: honest[2]}, {}),
        ("one is away, one lies, referee", {1: [lie[0], h[2]], 2: honest[2]}, {0: h[0], 1: h[1]}),
        ("two are away", {0: honest[0]}, {}),
        ("a referee by itself", {0: honest[0]}, dict(enumerate(h))),
        ("one lies about a component", lying, {}),
        ("a referee names the liar", lying, {1: h[1]}),
        ("a referee sides with nobody", lying, {1: lie[1]}),
        ("a referee who contradicts the only holder", {0: honest[0], 2: honest[2]}, {2: lie[0]}),
        ("one lies about both", {**honest, 1: lie}, {1: h[1], 2: h[2]}),
    ]


def agreement(why: str, parts: dict[int, list[bytes]], judged: dict[int, bytes]) -> Vector:
    found = spec.agree_sum(parts, judged)
    return {
        "agreed": list(found["agreed"].values()),
        "agreedComponents": list(found["agreed"]),
        "disputed": list(found["disputes"]),
        "disputedSeats": list(found["disputes"].values()),
        "judged": spec.encode_judged(judged),
        "liars": found["liars"],
        "seats": list(parts),
        "stated": [b"OPFU\x02" + b"".join(each) for each in parts.values()],
        "unconfirmed": found["unconfirmed"],
        "why": why,
    }
