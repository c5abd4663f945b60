"""Training inputs as ring words, and words that are not an input."""

from vectors.made_up import single, word
from vectors.specification import is_refused, spec
from vectors.values import Vector


def input_case(batch: int, features: int, classes: int, f: int) -> Vector:
    label = f"input of {batch} x {features}"
    values = [single(f"{label} {i}") for i in range(batch * features)]
    labels = [word(f"{label} label {i}")[0] % classes for i in range(batch)]
    return {
        "batch": batch,
        "classes": classes,
        "encoded": spec.ring_bytes(spec.encode_input(values, labels, classes, f)),
        "features": [repr(x) for x in values],
        "fractionBits": f,
        "labels": labels,
    }


def inputs() -> Vector:
    assert is_refused(spec.encode_input, [0.0], [10], 10, 22)
    assert is_refused(spec.encode_input, [0.0], [-1], 10, 22)
    low, high = spec.feature_bounds([0.1307], [0.3081], 22)
    one = 1 << 22
    words = {
        "an input": [low, high, 0, one, 0],
        "too dark": [low - 1, 0, 0, one, 0],
        "too bright": [high + 1, 0, 0, one, 0],
        "no class": [0, 0, 0, 0, 0],
        "two classes": [0, 0, one, one, 0],
        "a thousand of a class": [0, 0, 0, 1000 * one, 0],
        "a class and a quantum": [0, 0, 1, one, 0],
        "classes that add up": [0, 0, 2 * one, -one, 0],
    }
    return {
        "cases": [input_case(1, 4, 10, 22), input_case(3, 2, 2, 18), input_case(2, 1, 3, 0)],
        "checkedBounds": [low, high],
        "checked": [
            {
                "isInput": spec.is_training_input(case, 2, 3, low, high, 22),
                "why": why,
                "words": case,
            }
            for why, case in words.items()
        ],
    }
