"""Guided replays, with right and wrong advice."""

from math import ceil, log
from typing import Any

from vectors.documents import text
from vectors.specification import spec
from vectors.values import Vector


def guided_boundary(coordinates: int, **fields: Any) -> Vector:
    return {
        "allowance_shift": 62,
        "bounds": [0] * len(fields.get("grid", [1000])),
        "ceiling_tolerance": 8,
        "coordinates": coordinates,
        "format": "opfl.boundary.v1",
        "grid": [1000],
        "infinity": 2**32 - 1,
        "mask_tolerance": 8,
        "policy_hash": "0x" + "00" * 32,
        "resolution_bits": 10,
        "rule": "guided",
        "scale_quantile": 1000,
        "spu_version": "0.9.5",
        **fields,
    }


def guided_case(
    why: str, limits: Vector, g: list[int], m: list[int], headroom: int | None
) -> Vector:
    unit, units = spec.excess(limits, g, m, headroom)
    return {
        "boundary": text(limits),
        "gradient": spec.ring_bytes(g),
        "headroom": headroom,
        "inside": spec.is_inside_guided(limits, g, m, headroom),
        "replay": spec.ring_bytes(m),
        "unit": unit,
        "units": [str(each) for each in units],
        "why": why,
    }


def guided() -> Vector:
    """Every part of the rule at its tie and one quantum to either side."""
    cases = []
    wide = [3 << 40] * 10
    for bound in [4, 5]:  # the sum of two has 43 bits: a unit is 2^33
        for off in [-1, 0, 1]:
            limits = guided_boundary(10, bounds=[bound])
            replay = [3 << 40] * 9 + [(3 << 40) - (5 << 33) - off]
            cases.append(guided_case(f"bound {bound}, {off} off five", limits, wide, replay, 0))
    for p in [900, 901]:
        limits = guided_boundary(10, grid=[p])
        replay = [3 << 40] * 9 + [5 << 39]
        cases.append(guided_case(f"one of ten at p={p}", limits, wide, replay, 0))
    for guard in [4, 5]:
        limits = guided_boundary(10, grid=[900], infinity=guard)
        replay = [3 << 40] * 9 + [(3 << 40) - (5 << 33)]
        cases.append(guided_case(f"guard at {guard}", limits, wide, replay, 0))
    for off in [0, 1]:  # 2^13 + 2^13 - 4 over 2^12 is 3
        limits = guided_boundary(1, allowance_shift=12, resolution_bits=62)
        cases.append(
            guided_case(f"allowance and {off}", limits, [1 << 13], [(1 << 13) - 3 - off], 0)
        )
    for headroom in [None, 0, 7, 32]:
        limits = guided_boundary(2, bounds=[1])
        cases.append(guided_case(f"headroom {headroom}", limits, [0, 0], [255, -256], headroom))
    low, high = -(2**63), 2**63 - 1
    for g, m in [(low, 0), (0, low), (high, low), (low, high), (low, low), (high, -1), (0, -1)]:
        limits = guided_boundary(1, infinity=3, bounds=[3])
        cases.append(guided_case(f"wraps: {g}, {m}", limits, [g], [m], 0))
    for quantile in [100, 500, 1000]:
        limits = guided_boundary(4, scale_quantile=quantile, bounds=[900])
        numbers = [1, 1 << 20, 1 << 30, 1 << 40]
        cases.append(
            guided_case(f"scale at {quantile}", limits, numbers, [n + n // 2 for n in numbers], 0)
        )
    assert {case["inside"] for case in cases} == {True, False}
    limits = guided_boundary(1)
    one = 1 << 22
    octave = ceil(log(2) * one)
    low, middle, highest, nothing = [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]
    advice = {  # masks, lifts, values, arguments (the first is the label's), totals
        "as advised": ([1, 0], low, [5, -5], [0, -5], [one]),
        "within the tolerance": ([1, 0], middle, [-8, 8], [8, -octave - 8], [one - 8]),
        "positive and not so": ([1, 0], low, [-9, -5], [0, 0], [one]),
        "not positive and so": ([1, 0], low, [5, 9], [0, 0], [one]),
        "label above its ceiling": ([1, 0], low, [5, -5], [9, 0], [one]),
        "other above its ceiling": ([1, 0], low, [5, -5], [0, 9], [one]),
        "no logit at its ceiling": ([1, 0], low, [5, -5], [0, 0], [one - 9]),
        "the lowest argument": ([1, 0], low, [5, -5], [-160 * one, 0], [one]),
        "below the lowest argument": ([1, 0], low, [5, -5], [-160 * one - 1, 0], [one]),
        "an argument that wraps around": ([1, 0], low, [5, -5], [-(2**63), 0], [one]),
        "a lift that could be higher": ([1, 0], middle, [5, -5], [0, -octave - 9], [one]),
        "no higher lift is left": ([1, 0], highest, [5, -5], [0, -octave - 9], [one]),
        "nothing to learn": ([1, 0], nothing, [5, -5], [0, -octave - 9], [one]),
        "nothing to learn, and not so": ([1, 0], nothing, [5, -5], [0, 9], [one]),
        "a mask of two": ([2, 0], low, [5, -5], [0, 0], [one]),
        "no lift": ([1, 0], [0, 0, 0, 0], [5, -5], [0, 0], [one]),
        "two lifts": ([1, 0], [1, 1, 0, 0], [5, -5], [0, 0], [one]),
        "lifts that add up to one": ([1, 0], [2, -1, 0, 0], [5, -5], [0, 0], [one]),
    }
    return {
        "advice": [
            {
                "arguments": [str(x) for x in a],
                "borneOut": spec.is_borne_out(
                    limits, masks, lifts, values, a, z, [True, False], 22
                ),
                "lifts": lifts,
                "masks": masks,
                "totals": z,
                "values": values,
                "why": why,
            }
            for why, (masks, lifts, values, a, z) in advice.items()
        ],
        "boundary": text(limits),
        "cases": cases,
        "encodedAdvice": spec.ring_bytes(spec.encode_advice([True, False], 2, 3, [1.5, -0.25], 22)),
        "fractionBits": 22,
    }
