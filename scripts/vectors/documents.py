"""Policies and boundaries: canonical ones, and malformed ones."""

from typing import Any

from vectors.specification import is_refused, spec
from vectors.values import Vector


def text(document: Vector) -> str:
    return str(spec.canonical_json(document), "utf-8")


POLICY: Vector = {
    "audit_rate": str(spec.audit_rate(0.05)),
    "commitment_scheme": "shares",
    "data": {
        "batch_size": 1,
        "classes": 10,
        "input_shape": [28, 28, 1],
        "label_shape": [],
        "mean": [0.1307],
        "std": [0.3081],
    },
    "format": "opfl.policy.v1",
    "fraction_bits": 22,
    "loss_scale": 64,
    "model": {"name": "lenet", "parameters": {"filters": 6, "hidden": 120}},
    "optimizer": {"learning_rate": 0.01, "momentum": 0.9, "name": "sgd", "weight_decay": 0.0},
    "quantile_grid": [20, *range(50, 901, 50), 950, 980],
    "replay": {"kind": "plain"},
    "seeds": {"data": 1, "model": 0},
    "spu": {
        "compiler_options": {"enable_pretty_print": False},
        "exp_mode": "EXP_PADE",
        "field": "FM64",
        "protocol": "ABY3",
        "runtime_options": {},
        "version": "0.9.5",
    },
}


def policy() -> Vector:
    adamw: Vector = {
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "learning_rate": 5e-5,
        "name": "adamw",
        "weight_decay": 0.01,
    }
    options: Vector = {"cut": 1e22, "long": True, "name": 'käse " \\ \n \u2028 𝄞', "tiny": 5e-324}
    cases = [
        POLICY,
        POLICY | {"audit_rate": str(spec.ALWAYS), "commitment_scheme": "mpc"},
        POLICY | {"model": {"name": "bert", "parameters": options}, "optimizer": adamw},
        POLICY | {"loss_scale": 1 << 28, "replay": {"kind": "guided", "largest_lift": 22}},
    ]
    canonical = text(POLICY)
    rate = POLICY["audit_rate"]
    malformed = {
        "empty": "",
        "not an object": "[]",
        "a space": canonical.replace(":", ": ", 1),
        "a line at the end": canonical + "\n",
        "keys out of order": '{"loss_scale":64,' + canonical.replace('"loss_scale":64,', "")[1:],
        "unknown field": text(POLICY | {"zero": 0}),
        "missing field": text({k: POLICY[k] for k in POLICY if k != "data"}),
        "key twice": canonical.replace('"seeds"', '"loss_scale":64,"seeds"'),
        "escaped letter": canonical.replace("lenet", "\\u006cenet"),
        "float for an integer": canonical.replace('"loss_scale":64', '"loss_scale":64.0'),
        "integer for a float": canonical.replace('"weight_decay":0.0', '"weight_decay":0'),
        "digits too many": canonical.replace("0.01", "0.010"),
        "nan": canonical.replace('"weight_decay":0.0', '"weight_decay":NaN'),
        "number for a string": canonical.replace('"0.9.5"', "0.9"),
        "string for a number": canonical.replace('"loss_scale":64', '"loss_scale":"64"'),
        "audit rate as a number": canonical.replace(f'"{rate}"', rate),
        "audit rate above always": text(POLICY | {"audit_rate": str(spec.ALWAYS + 1)}),
        "scale that is no power of two": text(POLICY | {"loss_scale": 63}),
        "grid that does not increase": text(POLICY | {"quantile_grid": [50, 50]}),
    }
    assert len(set(malformed.values()) - {canonical}) == len(malformed)
    return {
        "hashes": [spec.document_hash(case) for case in cases],
        "malformed": list(malformed.values()),
        "malformedWhy": list(malformed),
        "texts": [text(case) for case in cases],
    }


def paper_boundary(coordinates: int, **fields: Any) -> Vector:
    grid = fields["grid"]
    return {
        "absolute": [2**53 - 1] * len(grid),
        "coordinates": coordinates,
        "epsilon": 0,
        "format": "opfl.boundary.v1",
        "infinity": 2**53 - 1,
        "policy_hash": "0x" + spec.document_hash(POLICY).hex(),
        "relative": [0] * len(grid),
        "rule": "paper",
        "spu_version": "0.9.5",
        **fields,
    }


def boundary() -> Vector:
    f, scale, infinity = 22, 64, 1e-3
    absolute = [0.0, 1e-9, 2.0**-28, 1e-6, 5.960464477539063e-08]
    relative = [0.0, 1e-12, 1e-4, 0.1, 2 / 3, 1.0, 1.9999, 2.0, 5.0]
    guard = spec.quanta_above(infinity, f, scale)
    full = paper_boundary(
        61706,
        absolute=[spec.quanta_above(1e-8 * (1 + i), f, scale) for i in range(21)],
        epsilon=spec.quanta_above(1e-6, f, scale),
        grid=POLICY["quantile_grid"],
        infinity=guard,
        relative=[spec.relative_factor(1e-4 * (1 + i), guard) for i in range(21)],
    )
    cases = [full, paper_boundary(1, grid=[1000], infinity=0, absolute=[0], relative=[15 << 49])]
    for case in cases:
        spec.check_boundary(case)
    malformed = {
        "grid that does not increase": full | {"grid": [*full["grid"][:-1], 950]},
        "quantile of zero": full | {"grid": [0, *full["grid"][1:]]},
        "quantile above one": full | {"grid": [*full["grid"][:-1], 1001]},
        "no quantiles": full | {"absolute": [], "grid": [], "relative": []},
        "absolute bounds too few": full | {"absolute": full["absolute"][1:]},
        "relative bounds too many": full | {"relative": [*full["relative"], 1]},
        "negative bound": full | {"absolute": [-1, *full["absolute"][1:]]},
        "five significant bits": full | {"relative": [17, *full["relative"][1:]]},
        "factor times guard": full | {"relative": [1 << 45, *full["relative"][1:]]},
        "beyond 53 bits": full | {"infinity": 2**53, "relative": [0] * 21},
        "no coordinates": full | {"coordinates": 0},
        "rule": full | {"rule": "guess"},
    }
    for why, case in malformed.items():
        assert is_refused(spec.check_boundary, case), why
    return {
        "absolute": [repr(bound) for bound in absolute],
        "absoluteQuanta": [str(spec.quanta_above(bound, f, scale)) for bound in absolute],
        "fractionBits": f,
        "hashes": [spec.document_hash(case) for case in cases],
        "infinity": str(guard),
        "malformed": [text(case) for case in malformed.values()],
        "malformedWhy": list(malformed),
        "needCounts": [1, 10, 10, 999, 1000, 1001, 61706, 61706],
        "needGrid": [1, 20, 1000, 1, 1, 1, 980, 20],
        "needs": [1, 1, 10, 1, 1, 2, 60472, 1235],
        "relative": [repr(bound) for bound in relative],
        "relativeFactors": [str(spec.relative_factor(bound, guard)) for bound in relative],
        "scale": scale,
        "texts": [text(case) for case in cases],
    }
