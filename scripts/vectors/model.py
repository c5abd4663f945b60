"""The next model: the mean of a sum, and the resulting weights."""

from vectors.made_up import made_up_words, single
from vectors.specification import is_refused, spec
from vectors.values import Vector


def sgd_run(rules: Vector, weights: list[float], gradients: list[list[float]]) -> list[float]:
    velocity = [0.0] * len(weights)
    for gradient in gradients:
        rows = zip(weights, velocity, gradient, strict=True)
        steps = [spec.sgd_step(rules, *row) for row in rows]
        weights, velocity = map(list, zip(*steps, strict=True))
    return weights


def adamw_run(rules: Vector, weights: list[float], gradients: list[list[float]]) -> list[float]:
    m, v = [0.0] * len(weights), [0.0] * len(weights)
    for t, gradient in enumerate(gradients, 1):
        rows = zip(weights, m, v, gradient, strict=True)
        steps = [spec.adamw_step(rules, t, *row) for row in rows]
        weights, m, v = map(list, zip(*steps, strict=True))
    return weights


def model() -> Vector:
    """The mean of a sum, and weights from means. Floats are their shortest digits."""
    f, scale = 22, 64
    totals = [0, 1, -1, 3, 2**24 + 1, 2**53 + 1, -(2**62), 2**63 - 1, *made_up_words("total", 4)]
    contributions = [2, 3, 7, 100]
    assert is_refused(spec.mean_gradient, totals, 0, f, scale)
    weights = [single(f"weight {i}") for i in range(6)]
    gradients = [[single(f"gradient {t} {i}") / 8 for i in range(6)] for t in range(5)]
    plain: Vector = {"learning_rate": 0.01, "momentum": 0.0, "name": "sgd", "weight_decay": 0.0}
    adamw: Vector = {
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "learning_rate": 0.001,
        "name": "adamw",
        "weight_decay": 0.01,
    }
    optimizers = [
        plain,
        plain | {"momentum": 0.9},
        plain | {"momentum": 0.9, "weight_decay": 5e-4},
        adamw,
        adamw | {"weight_decay": 0.0},
    ]
    hashed = [[0.0], [-0.0], [1.0, -2.5], weights, [3.4028234663852886e38, 1.401298464324817e-45]]
    assert is_refused(spec.weights_hash, [0.1])
    assert is_refused(spec.weights_hash, [float("inf")])
    runs = [
        (sgd_run if rules["name"] == "sgd" else adamw_run)(rules, weights, gradients)
        for rules in optimizers
    ]
    return {
        "contributions": contributions,
        "fractionBits": f,
        "gradients": [[repr(x) for x in gradient] for gradient in gradients],
        "hashed": [[repr(x) for x in case] for case in hashed],
        "hashes": [spec.weights_hash(case) for case in hashed],
        "means": [
            [repr(x) for x in spec.mean_gradient(totals, n, f, scale)] for n in contributions
        ],
        "nextHashes": [spec.weights_hash(run) for run in runs],
        "nextWeights": [[repr(x) for x in run] for run in runs],
        "optimizers": optimizers,
        "scale": scale,
        "total": spec.ring_bytes(totals),
        "weights": [repr(x) for x in weights],
    }
