"""Replays and their discrepancy profiles, under the paper's rule."""

from vectors.documents import paper_boundary, text
from vectors.specification import spec
from vectors.values import Vector


def profile_case(why: str, limits: Vector, g: list[int], m: list[int]) -> Vector:
    absolute, relative, beyond = spec.profile(limits, g, m)
    return {
        "absoluteCounts": absolute,
        "beyond": beyond,
        "boundary": text(limits),
        "gradient": spec.ring_bytes(g),
        "inside": spec.is_inside(limits, g, m),
        "relativeCounts": relative,
        "replay": spec.ring_bytes(m),
        "why": why,
    }


def profile() -> Vector:
    """Every threshold at its tie, and one quantum and one coordinate to either side."""
    cases = []
    spread = [0, 1, 2, 3, 4, -5, 6, 7, 8, -9]  # distances of ten coordinates from a replay of 1000
    replay = [1000] * 10
    gradient = [1000 + d for d in spread]
    for p, tie in [(100, 0), (200, 1), (500, 4), (501, 5), (980, 9)]:
        for bound in [tie - 1, tie, tie + 1]:
            if bound >= 0:
                limits = paper_boundary(10, grid=[p], absolute=[bound])
                cases.append(profile_case(f"absolute p={p} at {bound}", limits, gradient, replay))
    for guard in [8, 9, 10]:
        limits = paper_boundary(10, grid=[1000], infinity=guard)
        cases.append(profile_case(f"guard at {guard}", limits, gradient, replay))
    for factor in [0, 8, 9, 10]:  # 9 * 2 = |10 + 8| at the first coordinate
        for off in [-1, 0, 1]:
            limits = paper_boundary(2, grid=[1000], relative=[factor])
            g, m = [10, 100], [8 + off, 100]
            cases.append(profile_case(f"relative {factor}, replay {8 + off}", limits, g, m))
    for epsilon in [4, 5, 6]:  # 5 * 2 = |1 - 1| + 2 * 5
        limits = paper_boundary(1, grid=[1000], relative=[5], epsilon=epsilon)
        cases.append(profile_case(f"epsilon {epsilon}", limits, [1], [-1]))
    low, high = -(2**63), 2**63 - 1
    for g, m in [(low, 0), (0, low), (high, low), (low, high), (low, low), (low, 1), (high, -1)]:
        for factor in [0, 1, 15]:
            limits = paper_boundary(1, grid=[1000], infinity=3, relative=[factor], epsilon=7)
            cases.append(profile_case(f"wraps: {g}, {m}, factor {factor}", limits, [g], [m]))
    both = paper_boundary(
        10,
        grid=[200, 500, 980],
        absolute=[1, 4, 9],
        relative=[1536, 480, 208],
        epsilon=2,
        infinity=9,
    )
    cases.append(profile_case("all thresholds at once", both, gradient, replay))
    cases.append(profile_case("equal", both, replay, replay))
    assert {case["inside"] for case in cases} == {True, False}
    values = [5, 3, 3, 9, -2, 0, 7]
    grid = [1, 142, 143, 285, 286, 500, 857, 858, 1000]
    return {
        "cases": cases,
        "quantileGrid": grid,
        "quantileValues": values,
        "quantiles": [spec.quantile(values, p) for p in grid],
    }
