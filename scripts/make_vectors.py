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


def dataset() -> Vector:
    inputs = [b"", b"\x00", bytes(range(64)), b"\xff" * 33, b"input"]
    salts = words("input salt", len(inputs))
    commitments = [spec.input_commitment(s, z) for s, z in zip(salts, inputs, strict=True)]
    far_round = 2**200
    return {
        "commitments": commitments,
        "farLeaf": spec.dataset_leaf(far_round, commitments[0]),
        "farRound": str(far_round),
        "inputs": inputs,
        "salts": salts,
        **tree(spec.dataset_leaves(commitments)),
    }


def shares() -> Vector:
    lengths = [1, 2, 17, 100]
    components = [
        [b"".join(word(f"share {n} {k} {i}")[:8] for i in range(n)) for n in lengths]
        for k in range(3)
    ]
    salts = [words(f"share salt {k}", len(lengths)) for k in range(3)]
    hashes = [
        [spec.share_hash(k, s, x) for s, x in zip(salts[k], components[k], strict=True)]
        for k in range(3)
    ]
    vector: Vector = {
        "commitments": [spec.gradient_commitment(*h) for h in zip(*hashes, strict=True)]
    }
    for k in range(3):
        vector |= {f"components{k}": components[k], f"hashes{k}": hashes[k], f"salts{k}": salts[k]}
    return vector


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
        assert is_refused(passes, faults), why
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


def is_refused(passes: bytes, faults: bytes) -> bool:
    try:
        spec.decode_verdict(passes, faults)
    except AssertionError:
        return True
    return False


def statements() -> Vector:
    """One file for all types: entry i of every array belongs to statement i of each type."""
    separator = spec.domain_separator(CHAIN_ID, JOBS)
    ids = [(1, 0), (7, 3), (2**64 - 1, 2**32 - 1)]
    n = len(ids)
    clients, commitments = addresses("client", n), words("gradient", n)
    audited = [True, False, True]
    verdicts, aggregates, models = words("verdict", n), words("aggregate", n), words("model", n)
    return {
        "acquittalDigests": [
            spec.acquittal_digest(separator, *ids[i], clients[i]) for i in range(n)
        ],
        "aggregateHashes": aggregates,
        "audited": audited,
        "chainId": CHAIN_ID,
        "clients": clients,
        "commitments": commitments,
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
    "batch": batch,
    "beacon": beacon,
    "dataset": dataset,
    "merkle": merkle,
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
