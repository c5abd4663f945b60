"""Deadlines, the parts of phases, and the shortest phases."""

from vectors.specification import spec
from vectors.values import Vector


def steps() -> Vector:
    cases = [(0, 5, 5), (7, 12, 5), (100, 112, 5), (40, 56, 16), (40, 99, 16), (9, 13, 4)]
    return {
        "ends": [case[1] for case in cases],
        "partEnds": [spec.part_ends(*case) for case in cases],
        "parts": [case[2] for case in cases],
        "shortest": dict(spec.SHORTEST_PHASES),
        "starts": [case[0] for case in cases],
    }


def deadlines() -> Vector:
    lengths = [(1, 2, 3, 4, 5, 6, 7), (10, 10, 5, 2, 10, 17, 4), (7200, 1, 1, 1, 1, 1, 2**29)]
    lengths = [dict(zip((*spec.PHASES, "response"), each, strict=True)) for each in lengths]
    opened = [1, 12_345_678, 2**30]
    found = [spec.deadlines_of(*each) for each in zip(lengths, opened, strict=True)]
    names = [*spec.PHASES, "response"]
    return {
        "deadlines": [[each[name] for name in names] for each in found],
        "lengths": [[each[name] for name in names] for each in lengths],
        "openedAt": opened,
    }
