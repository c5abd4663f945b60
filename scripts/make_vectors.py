"""Write tests/vectors/*.json from the executable definitions of docs/SPEC.md.

    python scripts/make_vectors.py            write all files
    python scripts/make_vectors.py --check    fail if a file is not what SPEC.md says

Nothing of opfl_chain is imported: the vectors test the package and the contracts alike. Only
the BLS arithmetic of beacon.json comes from a library, which published.json checks in turn.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from math import ceil, log
from pathlib import Path
from types import ModuleType
from typing import Any

from eth_utils.address import to_checksum_address
from py_arkworks_bls12381 import G1Point, G2Point, Scalar

ROOT = Path(__file__).resolve().parent.parent
SPEC = ROOT / "docs" / "SPEC.md"
VECTORS = ROOT / "tests" / "vectors"

CHAIN_ID = 31337
Vector = dict[str, Any]


def load_spec(path: Path = SPEC) -> ModuleType:
    """Run the Python blocks of SPEC.md, in order, as one module."""
    text = path.read_text(encoding="utf-8")
    spec = ModuleType("spec")
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, match.start(1))
        code = compile("\n" * line + match[1], str(path), "exec")  # errors name the line in SPEC.md
        exec(code, spec.__dict__)
    return spec


spec = load_spec()


# Made-up values: hashes of labels, so that they are deterministic and look like the real ones.


def word(label: str) -> bytes:
    return bytes(spec.keccak256(label.encode()))


class Address(bytes):
    """20 bytes that are an address and not any other byte string of that length."""


def address(label: str) -> Address:
    return Address(word(label)[12:])


def words(label: str, count: int) -> list[bytes]:
    return [word(f"{label} {i}") for i in range(count)]


def addresses(label: str, count: int) -> list[Address]:
    return [address(f"{label} {i}") for i in range(count)]


JOBS = address("jobs contract")
BEACON = address("beacon contract")
NOBODY = Address(20)


def is_refused(function: Callable[..., Any], *arguments: Any) -> bool:
    try:
        function(*arguments)
    except AssertionError:
        return True
    return False


def tags() -> Vector:
    return {"names": list(spec.TAG_NAMES), "tags": [spec.tag(name) for name in spec.TAG_NAMES]}


def tree(leaves: list[bytes]) -> Vector:
    return {
        "leaves": leaves,
        "proofs": [spec.merkle_proof(leaves, i) for i in range(len(leaves))],
        "root": spec.merkle_root(leaves),
    }


def merkle() -> Vector:
    sizes = [1, 2, 3, 4, 5, 7, 8]
    return {"cases": [tree(words(f"leaf of {size}", size)) for size in sizes], "sizes": sizes}


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


def single(label: str) -> float:
    """A made-up float32 in (-2, 2)."""
    return (int.from_bytes(word(label)[:3], "big") - 2**23) / 2**22


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


def dataset() -> Vector:
    commitments = words("input commitment", 5)
    far_round = 2**200
    return {
        "commitments": commitments,
        "farLeaf": spec.dataset_leaf(far_round, commitments[0]),
        "farRound": str(far_round),
        **tree(spec.dataset_leaves(commitments)),
    }


def made_up_words(label: str, count: int) -> list[int]:
    return [int.from_bytes(word(f"{label} {i}")[:8], "little", signed=True) for i in range(count)]


def shares() -> Vector:
    lengths = [1, 2, 4, 17, 100]
    sent = [
        *(words(f"share seed {k}", len(lengths)) for k in range(2)),
        [spec.ring_bytes(made_up_words(f"share {n}", n)) for n in lengths],
    ]
    salts = [words(f"share salt {k}", len(lengths)) for k in range(3)]
    hashes = [
        [spec.share_hash(k, s, x) for s, x in zip(salts[k], sent[k], strict=True)] for k in range(3)
    ]
    rows = list(zip(*hashes, strict=True))
    vector: Vector = {
        "gradientCommitments": [spec.shares_commitment(spec.TAG_GRADIENT, *h) for h in rows],
        "inputCommitments": [spec.shares_commitment(spec.TAG_INPUT, *h) for h in rows],
    }
    for k in range(3):
        vector |= {f"hashes{k}": hashes[k], f"salts{k}": salts[k], f"sent{k}": sent[k]}
    return vector


def ring_shares() -> Vector:
    seeds = [bytes(32), b"\xff" * 32, *words("expanded seed", 2)]
    counts = [1, 2, 3, 33]
    xs = [*made_up_words("shared", 5), 0, 1, -1, 2**63 - 1, -(2**63)]
    seed0, seed1 = words("seed of component", 2)
    components = spec.split(xs, seed0, seed1)
    assert spec.reconstruct(components) == xs
    return {
        "components": [spec.ring_bytes(component) for component in components],
        "counts": counts,
        "expanded": [
            spec.ring_bytes(spec.expand(s, n)) for s, n in zip(seeds, counts, strict=True)
        ],
        "heldBy": [spec.held_by(rank) for rank in range(3)],
        "seed0": seed0,
        "seed1": seed1,
        "seeds": seeds,
        "words": spec.ring_bytes(xs),
    }


def packages() -> Vector:
    """Packages of both schemes, and malformed ones for member 1 of the scheme `shares`."""
    count, salts = 3, words("package salt", 3)
    seed0, seed1 = words("package seed", 2)
    components = spec.split(made_up_words("packaged", count), seed0, seed1)
    sent = [seed0, seed1, spec.ring_bytes(components[2])]
    assert [spec.component_words(k, sent[k], count) for k in range(3)] == components
    parts = list(zip(salts, sent, strict=True))
    hashes = [spec.share_hash(k, *part) for k, part in enumerate(parts)]
    commitment = spec.shares_commitment(spec.TAG_GRADIENT, *hashes)
    encoded = {
        scheme: [
            spec.encode_package(scheme, rank, count, hashes, [parts[k] for k in spec.held_by(rank)])
            for rank in range(3)
        ]
        for scheme in spec.SCHEMES
    }
    for scheme, by_rank in encoded.items():
        for rank, package in enumerate(by_rank):
            decoded = spec.decode_package(package, scheme, rank, count)
            assert spec.package_opens(rank, *decoded, spec.TAG_GRADIENT, commitment)
    good = encoded["shares"][1]
    malformed = {
        "empty": b"",
        "magic": b"opfs" + good[4:],
        "version": good[:4] + b"\x02" + good[5:],
        "other scheme": encoded["mpc"][1],
        "unknown scheme": good[:5] + b"\x03" + good[6:],
        "other member": encoded["shares"][2],
        "no such member": good[:6] + b"\x03" + good[7:],
        "count": good[:7] + spec.uint(4, 64) + good[15:],
        "count beyond all memory": good[:7] + spec.uint(2**64 - 1, 64) + good[15:],
        "ends in the header": good[:14],
        "ends in a leaf hash": good[:110],
        "ends before the first component": good[:111],
        "words in place of a seed": good[:143] + sent[2] + good[175:],
        "ends in the salt": good[:130],
        "ends before the second component": good[:175],
        "seed in place of words": good[:207] + seed0,
        "one byte short": good[:-1],
        "one byte long": good + b"\x00",
        "twice": good + good,
    }
    for why, package in malformed.items():
        assert is_refused(spec.decode_package, package, "shares", 1, count), why
    wrong = {
        "leaf hash that is not held": flipped(good, 15),
        "leaf hash that is held": flipped(good, 47),
        "salt of a seed": flipped(good, 111),
        "seed": flipped(good, 143),
        "salt of words": flipped(good, 175),
        "words": flipped(good, len(good) - 1),
    }
    for why, package in wrong.items():
        decoded = spec.decode_package(package, "shares", 1, count)
        assert not spec.package_opens(1, *decoded, spec.TAG_GRADIENT, commitment), why
    return {
        "commitment": commitment,
        "count": count,
        "hashes": hashes,
        "malformed": list(malformed.values()),
        "malformedWhy": list(malformed),
        "mpc": encoded["mpc"],
        "salts": salts,
        "seed0": seed0,
        "seed1": seed1,
        "shares": encoded["shares"],
        "words": spec.ring_bytes(spec.reconstruct(components)),
        "wrong": list(wrong.values()),
        "wrongIsCommitment": [why.startswith("leaf hash") for why in wrong],
        "wrongWhy": list(wrong),
    }


def shared_packages(label: str, scheme: str, xs: list[int]) -> list[bytes]:
    """What each member is sent of one secret."""
    seed0, seed1, *salts = words(f"{label} in {scheme}", 5)
    sent = [seed0, seed1, spec.ring_bytes(spec.split(xs, seed0, seed1)[2])]
    parts = list(zip(salts, sent, strict=True))
    hashes = [spec.share_hash(k, *part) for k, part in enumerate(parts)]
    return [
        spec.encode_package(scheme, rank, len(xs), hashes, [parts[k] for k in spec.held_by(rank)])
        for rank in range(3)
    ]


DELIVERED_WORDS = {"gradient": 3, "input": 2, "advice": 4}


def delivery_cases(scheme: str, rank: int) -> list[Vector]:
    """Not audited, audited in a plain replay, audited in a guided one."""
    salt = 4 if scheme == "mpc" else 0
    packages = {
        name: shared_packages(
            f"delivered {name}",
            scheme,
            made_up_words(name, count if name == "advice" else count + salt),
        )[rank]
        for name, count in DELIVERED_WORDS.items()
    }
    commitment, proof = word("delivered input"), words("delivered proof", 3)
    training_input = spec.encode_delivered_input(commitment, proof, packages["input"])
    counts = DELIVERED_WORDS["gradient"], DELIVERED_WORDS["input"]
    cases = []
    for audited, guided in [(False, False), (True, False), (True, True)]:
        advice = packages["advice"] if guided else b""
        advice_words = DELIVERED_WORDS["advice"] if guided else 0
        given = training_input if audited else b""
        data = spec.encode_delivery(packages["gradient"], given, advice)
        spec.decode_delivery(data, scheme, rank, *counts, advice_words)
        cases.append(
            {
                "advice": advice,
                "adviceWords": advice_words,
                "audited": audited,
                "commitment": commitment if audited else b"",
                "data": data,
                "gradient": packages["gradient"],
                "input": packages["input"] if audited else b"",
                "proof": proof if audited else [],
                "rank": rank,
                "scheme": scheme,
            }
        )
    return cases


def delivery() -> Vector:
    """Deliveries to each member in both schemes; malformed ones are for member 1 in `shares`."""
    cases = [case for s in spec.SCHEMES for rank in range(3) for case in delivery_cases(s, rank)]
    bare, _, full = delivery_cases("shares", 1)
    counts = tuple(DELIVERED_WORDS.values())
    good, gradient, advice = full["data"], full["gradient"], full["advice"]
    encoded, at = spec.encode_delivered_input, 29 + len(gradient)
    training_input = good[at : len(good) - len(advice)]
    longest = words("longest proof", spec.MOST_PROOF_NODES)

    def with_input(data: bytes) -> bytes:
        return bytes(spec.encode_delivery(gradient, data))

    def with_sizes(*sizes: int) -> bytes:
        return good[:5] + b"".join(spec.uint(size, 64) for size in sizes) + good[29:]

    sizes = len(gradient), len(training_input), len(advice)
    malformed = {
        "empty": b"",
        "magic": b"opfd" + good[4:],
        "version": good[:4] + b"\x02" + good[5:],
        "a package alone": gradient,
        "ends in the header": good[:28],
        "header alone": good[:29],
        "one byte short": good[:-1],
        "one byte long": good + b"\x00",
        "twice": good + good,
        "no gradient": spec.encode_delivery(b"", training_input, advice),
        "nothing at all": spec.encode_delivery(b""),
        "sizes beyond all memory": with_sizes(2**64 - 1, 2**64 - 1, 2**64 - 1),
        "sizes that wrap around": with_sizes(sizes[0] + 2**63, sizes[1] + 2**63, sizes[2]),
        "gradient that ends early": with_sizes(sizes[0] - 1, sizes[1] + 1, sizes[2]),
        "gradient that ends late": with_sizes(sizes[0] + 1, sizes[1] - 1, sizes[2]),
        "input that ends late": with_sizes(sizes[0], sizes[1] + 1, sizes[2] - 1),
        "input and advice in one": with_sizes(sizes[0], sizes[1] + sizes[2], 0),
        "input in place of the gradient": spec.encode_delivery(full["input"]),
        "advice in place of the input": spec.encode_delivery(gradient, advice),
        "input in place of the advice": spec.encode_delivery(gradient, b"", full["input"]),
        "one node too many": with_input(
            b"\x21" + encoded(word("input"), longest, word("one more") + full["input"])[1:]
        ),
        "number of nodes alone": with_input(b"\x00"),
        "ends in the commitment": with_input(training_input[:32]),
        "ends in the proof": with_input(training_input[: 33 + 95]),
        "input without a package": with_input(training_input[: 33 + 96]),
        "a node less than it says": with_input(b"\x04" + training_input[1:]),
        "a node more than it says": with_input(b"\x02" + training_input[1:]),
        "for another member": delivery_cases("shares", 2)[2]["data"],
        "of the other scheme": delivery_cases("mpc", 1)[2]["data"],
    }
    for why, data in malformed.items():
        assert is_refused(spec.decode_delivery, data, "shares", 1, *counts), why
    deep = with_input(encoded(word("input"), longest, full["input"]))
    spec.decode_delivery(deep, "shares", 1, *counts)
    spec.decode_delivery(bare["data"], "shares", 1, *counts)
    assert is_refused(spec.decode_delivery, good, "shares", 1, *counts[:2], 0)
    assert is_refused(encoded, word("input"), [*longest, word("one more")], full["input"])
    return {
        "cases": cases,
        "gradientWords": counts[0],
        "inputWords": counts[1],
        "longestProof": deep,
        "malformed": list(malformed.values()),
        "malformedAdviceWords": counts[2],
        "malformedWhy": list(malformed),
    }


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def gradient_tree() -> Vector:
    counts = [1, 16, 17, 64, 65, 1000]
    cases = [made_up_words(f"tree of {count}", count) for count in counts]
    salts = words("tree salt", len(counts))
    rows = list(zip(salts, cases, strict=True))
    return {
        "counts": counts,
        "gradientCommitments": [spec.tree_commitment(spec.TAG_GRADIENT, *row) for row in rows],
        "inputCommitments": [spec.tree_commitment(spec.TAG_INPUT, *row) for row in rows],
        "salted": [spec.ring_bytes(spec.salted_words(xs, salt)) for salt, xs in rows],
        "salts": salts,
        "tops": [spec.tree_top(xs) for xs in cases],
        "words": [spec.ring_bytes(xs) for xs in cases],
    }


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


def batch() -> Vector:
    job, round_, size = 7, 3, 5
    clients, commitments = addresses("client", size), words("gradient", size)
    pairs = zip(clients, commitments, strict=True)
    leaves = [spec.batch_leaf(job, round_, client, commitment) for client, commitment in pairs]
    return {
        "clients": clients,
        "commitments": commitments,
        "job": job,
        "round": round_,
        **tree(leaves),
    }


def accumulator_chain(job: int, round_: int, kinds: list[int]) -> Vector:
    """Kind 1 is a direct commitment, kind 2 a batch; `clients` or `counts` of the other is zero."""
    model_hash = word(f"model {round_}")
    initial = spec.initial_accumulator(CHAIN_ID, JOBS, job, round_, model_hash)
    clients = [address(f"client {i}") if kind == 1 else NOBODY for i, kind in enumerate(kinds)]
    counts = [0 if kind == 1 else 100**i for i, kind in enumerate(kinds)]
    values = words(f"committed in {round_}", len(kinds))
    accumulators = []
    accumulator = initial
    for kind, client, count, value in zip(kinds, clients, counts, values, strict=True):
        if kind == 1:
            accumulator = spec.accumulate_direct(accumulator, client, value)
        else:
            accumulator = spec.accumulate_batch(accumulator, value, count)
        accumulators.append(accumulator)
    return {
        "accumulators": accumulators,
        "clients": clients,
        "counts": counts,
        "final": accumulator,
        "initial": initial,
        "job": str(job),
        "kinds": kinds,
        "modelHash": model_hash,
        "round": round_,
        "roundId": str(spec.round_id(job, round_)),
        "values": values,
    }


def accumulator() -> Vector:
    cases = [
        accumulator_chain(1, 0, []),
        accumulator_chain(1, 1, [1]),
        accumulator_chain(1, 2, [2]),
        accumulator_chain(2, 3, [1, 1, 2, 1]),
        accumulator_chain(2**64 - 1, 2**32 - 1, [2, 1, 2, 2, 1]),
    ]
    return {"cases": cases, "chainId": CHAIN_ID, "count": len(cases), "jobs": JOBS}


def encode_point(point: G1Point | G2Point) -> bytes:
    """EIP-2537: base field elements of 64 bytes, c0 before c1."""
    xy = bytes(point.to_xy_bytes_be())
    return b"".join(bytes(16) + xy[i : i + 48] for i in range(0, len(xy), 48))


def sign(secret: int, message: bytes, dst: bytes) -> G1Point:
    return G1Point.hash_to_curve(message, dst) * Scalar(secret)


def beacon() -> Vector:
    """Three members with real keys: proofs of possession, partial and aggregate signatures."""
    members = addresses("member", 3)
    secrets = [int.from_bytes(w, "big") >> 2 for w in words("secret key", 3)]
    points = [G2Point() * Scalar(secret) for secret in secrets]
    keys = [encode_point(point) for point in points]
    possession_messages = [
        spec.proof_of_possession_message(CHAIN_ID, BEACON, member, key)
        for member, key in zip(members, keys, strict=True)
    ]
    possession_proofs = [
        encode_point(sign(secret, message, spec.PROOF_OF_POSSESSION_DST))
        for secret, message in zip(secrets, possession_messages, strict=True)
    ]
    rounds = [(1, 0), (1, 1), (2**64 - 1, 2**32 - 1)]
    accumulators = [word(f"accumulator {i}")[:28] for i in range(len(rounds))]
    messages = [
        spec.beacon_message(CHAIN_ID, BEACON, job, round_, accumulator)
        for (job, round_), accumulator in zip(rounds, accumulators, strict=True)
    ]
    partials = [[sign(s, message, spec.SIGNATURE_DST) for message in messages] for s in secrets]
    signatures = [encode_point(a + b + c) for a, b, c in zip(*partials, strict=True)]
    return {
        "accumulators": accumulators,
        "aggregatePublicKey": encode_point(points[0] + points[1] + points[2]),
        "beacon": BEACON,
        "chainId": CHAIN_ID,
        "jobs": [str(job) for job, _ in rounds],
        "members": members,
        "messages": messages,
        "partials0": [encode_point(p) for p in partials[0]],
        "partials1": [encode_point(p) for p in partials[1]],
        "partials2": [encode_point(p) for p in partials[2]],
        "possessionDst": spec.PROOF_OF_POSSESSION_DST,
        "possessionMessages": possession_messages,
        "possessionProofs": possession_proofs,
        "publicKeys": keys,
        "rounds": [round_ for _, round_ in rounds],
        "secretKeys": [secret.to_bytes(32, "big") for secret in secrets],
        "seeds": [spec.seed_of_signature(signature) for signature in signatures],
        "signatureDst": spec.SIGNATURE_DST,
        "signatures": signatures,
    }


def sampling() -> Vector:
    seeds = [bytes(32), b"\xff" * 32, *words("seed", 2)]
    draws = []
    for seed in seeds:
        for client in addresses("client", 2):
            ticket = spec.audit_ticket(seed, client)
            rates = [0, 1, spec.audit_rate(0.05), spec.audit_rate(0.5), ticket, ticket + 1]
            draws += [(seed, client, rate) for rate in [*rates, spec.ALWAYS - 1, spec.ALWAYS]]
    probabilities = [0.0, 2.0**-64, 0.01, 0.05, 0.1, 0.5, 1.0]
    return {
        "audited": [spec.is_audited(*draw) for draw in draws],
        "clients": [client for _, client, _ in draws],
        "probabilities": [repr(p) for p in probabilities],
        "probabilityRates": [str(spec.audit_rate(p)) for p in probabilities],
        "rates": [str(rate) for _, _, rate in draws],
        "seeds": [seed for seed, _, _ in draws],
        "tickets": [str(spec.audit_ticket(seed, client)) for seed, client, _ in draws],
    }


def verdict_case(passed: set[int], faults: dict[int, int]) -> Vector:
    passes_bytes, faults_bytes = spec.encode_passes(passed), spec.encode_faults(faults)
    assert spec.decode_verdict(passes_bytes, faults_bytes) == (passed, faults)
    return {
        "faultClients": sorted(faults),
        "faultReasons": [faults[client] for client in sorted(faults)],
        "faults": faults_bytes,
        "hash": spec.verdict_hash(passes_bytes, faults_bytes),
        "passed": sorted(passed),
        "passes": passes_bytes,
    }


def verdict() -> Vector:
    cases = [
        verdict_case(set(), {}),
        verdict_case({0}, {}),
        verdict_case({7, 8}, {0: 1}),
        verdict_case({0, 1, 2, 4}, {3: 4}),
        verdict_case(set(range(100)) - {13, 50, 99}, {99: 2, 13: 3, 50: 1}),
        verdict_case(set(), {0: 1, 1: 2, 2: 3, 2**32 - 1: 4}),
    ]
    malformed = {
        "length is not a multiple of 5": (b"", bytes(4)),
        "length has one byte too many": (b"", spec.encode_faults({1: 1}) + b"\x01"),
        "reason 0": (b"", bytes.fromhex("0000000100")),
        "reason 5": (b"", bytes.fromhex("0000000105")),
        "decreasing order": (b"", spec.encode_faults({2: 1}) + spec.encode_faults({1: 1})),
        "one client twice": (b"", spec.encode_faults({1: 1}) + spec.encode_faults({1: 2})),
        "fault of a client that passed": (spec.encode_passes({9}), spec.encode_faults({9: 4})),
    }
    for why, (passes, faults) in malformed.items():
        assert is_refused(spec.decode_verdict, passes, faults), why
    zero_padded = (spec.encode_passes({1}) + bytes(3), b"")
    assert spec.decode_verdict(*zero_padded) == ({1}, {})
    return {
        "cases": cases,
        "count": len(cases),
        "malformedFaults": [faults for _, faults in malformed.values()],
        "malformedPasses": [passes for passes, _ in malformed.values()],
        "malformedWhy": list(malformed),
        "zeroPaddedHash": spec.verdict_hash(*zero_padded),
        "zeroPaddedPasses": zero_padded[0],
    }


def sum_case(label: str, gradients: list[list[int]]) -> Vector:
    """Each member's components of every gradient, of the sum, and what opens."""
    shared = [spec.split(xs, *words(f"{label} seeds {i}", 2)) for i, xs in enumerate(gradients)]
    sums: list[list[int]] = [[], [], []]
    for rank in range(3):
        own, following = spec.held_by(rank)
        held = [(components[own], components[following]) for components in shared]
        for k, component in zip((own, following), spec.sum_components(held), strict=True):
            assert sums[k] in ([], component)  # both holders say the same
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
    """From a sum to the mean, and from means to weights. Floats are their shortest digits."""
    f, scale = 22, 64
    totals = [0, 1, -1, 3, 2**24 + 1, 2**53 + 1, -(2**62), 2**63 - 1, *made_up_words("total", 4)]
    contributions = [2, 3, 7, 100]
    assert is_refused(spec.mean_gradient, totals, 1, f, scale)
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


def statements() -> Vector:
    """One file for all types: entry i of every array belongs to statement i of each type."""
    separator = spec.domain_separator(CHAIN_ID, JOBS)
    ids = [(1, 0), (7, 3), (2**64 - 1, 2**32 - 1)]
    n = len(ids)
    clients, commitments = addresses("client", n), words("gradient", n)
    audited = [True, False, True]
    verdicts, aggregates, models = words("verdict", n), words("aggregate", n), words("model", n)
    members, deliveries = addresses("member", n), [b"", b"delivery", word("delivery")]
    return {
        "acquittalDigests": [
            spec.acquittal_digest(separator, *ids[i], clients[i]) for i in range(n)
        ],
        "aggregateHashes": aggregates,
        "audited": audited,
        "chainId": CHAIN_ID,
        "clients": clients,
        "commitments": commitments,
        "deliveries": deliveries,
        "deliveryEnvelopeDigests": [
            spec.delivery_envelope_digest(separator, *ids[i], clients[i], members[i], deliveries[i])
            for i in range(n)
        ],
        "deliveryReceiptDigests": [
            spec.delivery_receipt_digest(separator, *ids[i], clients[i], audited[i])
            for i in range(n)
        ],
        "domainSeparator": separator,
        "gradientCommitmentDigests": [
            spec.gradient_commitment_digest(separator, *ids[i], clients[i], commitments[i])
            for i in range(n)
        ],
        "jobs": [str(job) for job, _ in ids],
        "members": members,
        "modelHashes": models,
        "roundResultDigests": [
            spec.round_result_digest(separator, *ids[i], verdicts[i], aggregates[i], models[i])
            for i in range(n)
        ],
        "rounds": [round_ for _, round_ in ids],
        "verdictHashes": verdicts,
        "verifyingContract": JOBS,
    }


def slashing() -> Vector:
    ether = 10**18
    inputs = [
        (0, 5_000, 2_000, 3),
        (1, 5_000, 2_000, 3),
        (1_000, 5_000, 2_000, 3),
        (1_001, 5_000, 2_000, 3),
        (ether, 10_000, 0, 3),
        (ether, 0, 10_000, 3),
        (ether, 0, 0, 3),
        (ether + 1, 3_333, 3_333, 3),
        (2**96 - 1, 1, 9_998, 3),
        (12_345_678_901_234_567_890, 4_999, 1_234, 2),
        (99_999, 2_500, 2_500, 1),
    ]
    splits = [spec.split_slash(*arguments) for arguments in inputs]
    return {
        "amounts": [str(amount) for amount, _, _, _ in inputs],
        "burnBps": [burn_bps for _, burn_bps, _, _ in inputs],
        "burns": [str(burn) for burn, _, _ in splits],
        "eachMember": [str(each) for _, _, each in splits],
        "members": [members for _, _, _, members in inputs],
        "treasuries": [str(treasury) for _, treasury, _ in splits],
        "treasuryBps": [treasury_bps for _, _, treasury_bps, _ in inputs],
    }


MAKERS: dict[str, Callable[[], Vector]] = {
    "accumulator": accumulator,
    "aggregate": aggregate,
    "batch": batch,
    "beacon": beacon,
    "boundary": boundary,
    "dataset": dataset,
    "delivery": delivery,
    "fixed_point": fixed_point,
    "gradient_tree": gradient_tree,
    "guided": guided,
    "inputs": inputs,
    "merkle": merkle,
    "model": model,
    "packages": packages,
    "policy": policy,
    "profile": profile,
    "ring_shares": ring_shares,
    "sampling": sampling,
    "shares": shares,
    "slashing": slashing,
    "statements": statements,
    "tags": tags,
    "verdict": verdict,
}


def to_json(value: Any) -> Any:
    """Write bytes as hexadecimal, and addresses with their checksum."""
    if isinstance(value, Address):
        return to_checksum_address(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, dict):
        return {key: to_json(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def rendered() -> Iterator[tuple[Path, str]]:
    for name, make in MAKERS.items():
        yield VECTORS / f"{name}.json", json.dumps(to_json(make()), indent=2) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write tests/vectors/*.json from docs/SPEC.md.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args().check
    stale = []
    for path, text in rendered():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.relative_to(ROOT))
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{path} is not up to date" if check else f"wrote {path}")
    if check and stale:
        print("run python scripts/make_vectors.py and commit what changes", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
