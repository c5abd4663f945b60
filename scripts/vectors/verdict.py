"""Verdicts of a round, and malformed ones."""

from vectors.specification import is_refused, spec
from vectors.values import Vector


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
