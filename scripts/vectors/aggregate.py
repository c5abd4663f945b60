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
        for k, component in zip((own, following), spec.sum_components(held), strict=True):
            assert sums[k] in ([], component)  # both holders agree
            sums[k] = component
    opened = spec.open_sum(sums)
    assert opened == [spec.signed(sum(xs)) for xs in zip(*gradients, strict=True)]
    return {
        "components": [[spec.ring_bytes(x) for x in components] for components in shared],
        "contributions": len(gradients),
        "hash": spec.aggregate_hash(opened),
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
        assert is_refused(spec.sum_components, accepted), accepted
    for components in ([], [[1]] * 2, [[1]] * 4, [[1], [1], [1, 2]]):
        assert is_refused(spec.open_sum, components), components
    return {
        "cases": cases,
        "fewestContributions": spec.FEWEST_CONTRIBUTIONS,
        "hashOfNothing": spec.aggregate_hash([]),
    }
