"""Verdicts of a round: bitmaps of the clients that passed."""

from vectors.specification import spec
from vectors.values import Vector


def verdict_case(roll: set[int], audited: dict[int, int | None]) -> Vector:
    """`audited` has the outcome of each audited client, or None while it is undecided."""
    passes = spec.verdict_of(roll, set(audited), audited)
    passed = spec.passed_clients(passes)
    assert spec.encode_passes(passed) == passes
    return {
        "audited": sorted(audited),
        "count": len(passed),
        "hash": spec.verdict_hash(passes),
        "outcomes": [audited[client] or 0 for client in sorted(audited)],
        "passed": sorted(passed),
        "passes": passes,
        "roll": sorted(roll),
    }


def verdict() -> Vector:
    passed, outside, unanswered = spec.PASSED, spec.OUTSIDE, spec.UNANSWERED
    cases = [
        verdict_case({0}, {0: outside}),
        verdict_case({0}, {}),
        verdict_case({0, 7, 8}, {0: unanswered}),
        verdict_case({0, 1, 2, 3, 4}, {2: passed, 3: outside}),
        verdict_case(set(range(100)), {99: outside, 13: None, 50: unanswered, 51: passed}),
        verdict_case({255, 256, 300}, {300: None}),
    ]
    zero_padded = spec.encode_passes({1}) + bytes(3)
    assert spec.passed_clients(zero_padded) == {1}
    return {
        "cases": cases,
        "count": len(cases),
        "outcomeNames": ["passed", "outside", "unanswered"],
        "outcomeNumbers": [passed, outside, unanswered],
        "zeroPaddedHash": spec.verdict_hash(zero_padded),
        "zeroPaddedPasses": zero_padded,
    }
