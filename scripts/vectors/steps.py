"""The parts of phases, and the shortest phases."""

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
