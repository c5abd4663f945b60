"""Real numbers as ring words, and unencodable ones."""

from vectors.specification import is_refused, spec
from vectors.values import Vector


def fixed_point() -> Vector:
    """Floats are written as their shortest digits, which read back as the same float64."""
    exact = [0.0, -0.0, 1.0, -1.0, 0.1, -1e-3, 3.4028234663852886e38, 5e-324, 1.401298464324817e-45]
    reals = {
        (22, 1): [*exact[:6], *exact[7:]],
        (22, 64): [*exact[:6], 2.0**34 - 2.0**-18],
        (0, 1): [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999999999999994, 2.0**62 - 2.0**9],
        (1, 2): [0.125, 0.375, 0.625, -0.125, -0.375, 0.1250000000000001, 0.12499999999999999],
        (61, 1): [2.0**-61, 2.0**-62, 3 * 2.0**-62, 1.9999999999999998, -1.9999999999999998],
    }
    refused = {
        (22, 1): [float("nan"), float("inf"), float("-inf"), 2.0**40, -(2.0**40), 1e308],
        (22, 64): [2.0**34, -(2.0**34), exact[6]],
        (0, 1): [2.0**62, -(2.0**62)],
        (61, 1): [2.0, -2.0],
    }
    rows = [(x, f, s) for (f, s), values in reals.items() for x in values]
    refusals = [(x, f, s) for (f, s), values in refused.items() for x in values]
    for refusal in refusals:
        assert is_refused(spec.encode_real, *refusal), refusal
    return {
        "fractionBits": [f for _, f, _ in rows],
        "reals": [repr(x) for x, _, _ in rows],
        "refusedFractionBits": [f for _, f, _ in refusals],
        "refusedReals": [repr(x) for x, _, _ in refusals],
        "refusedScales": [s for _, _, s in refusals],
        "scales": [s for _, _, s in rows],
        "words": [str(spec.encode_real(*row)) for row in rows],
    }
