"""Messages from clients to members, and a job's data on chain."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from fuzz_target import Target, joined, parts_of

from opfl_chain.numerics.field import Elements, FieldError
from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.delivery import (
    Delivery,
    Expected,
    InputDelivery,
    decode_delivery,
    encode_delivery,
    largest_delivery,
)
from opfl_chain.protocol.errors import DocumentError, ProtocolError, ShareError
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.folding import LAST_VALUES, Answer
from opfl_chain.protocol.proof.package import ProofForm, ProofPackage, Sharing
from opfl_chain.protocol.proof.transcript import Transcript
from opfl_chain.protocol.shares import SharedVector, SharePackage, verify_components
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.rules.paper import PaperBoundary
from opfl_chain.rules.proved_rule import ProvedBoundary
from opfl_chain.rules.registry import boundary_from_json


def share_package(scheme: Scheme, rank: int) -> bytes:
    shared = SharedVector.split(np.arange(5), b"\1" * 32, b"\2" * 32)
    return shared.packages(scheme, [bytes([salt]) * 32 for salt in range(3)])[rank].encode()


def decode_package(data: bytes) -> SharePackage:
    """Decode for the member and scheme that the package names, so that all are tried."""
    scheme = Scheme.MPC if data[5:6] == b"\2" else Scheme.SHARES
    decoded = SharePackage.decode(data, scheme, int.from_bytes(data[6:7], "big"), 5)
    with suppress(ShareError):
        verify_components(decoded)
    return decoded


def delivery(scheme: Scheme, rank: int, audited: bool = True, nodes: int = 2) -> bytes:
    expected = expected_by(scheme, rank)
    counts = expected.gradient_words, expected.input_words
    packages = [
        SharedVector.split(np.arange(count), b"\1" * 32, b"\2" * 32).packages(
            scheme, [bytes([salt]) * 32 for salt in range(3)]
        )[rank]
        for count in (*map(expected.package_words, counts), expected.advice_words)
    ]
    gradient, training_input, advice = packages
    if not audited:
        return encode_delivery(Delivery(gradient))
    given = InputDelivery(training_input, b"\3" * 32, (b"\4" * 32,) * nodes)
    return encode_delivery(Delivery(gradient, given, advice))


def expected_by(scheme: Scheme, rank: int) -> Expected:
    return Expected(scheme, rank, gradient_words=3, input_words=2, advice_words=1)


def decode_any_delivery(data: bytes) -> Delivery:
    """Decode for the member and scheme of the first package."""
    scheme = Scheme.MPC if data[34:35] == b"\2" else Scheme.SHARES
    expected = expected_by(scheme, int.from_bytes(data[35:36], "big"))
    decoded = decode_delivery(data, expected)
    assert len(data) <= largest_delivery(expected)
    return decoded


PROOF = ProofForm((3, 2, 1, 2, LAST_VALUES))


def proof_package(rank: int) -> bytes:
    sharing = Sharing((b"\1" * 32, b"\2" * 32), b"\3" * 32, Transcript(bytes(32)))
    for count in PROOF.sizes:
        sharing.share(Elements.of_integers(np.arange(count)))
    return sharing.packages()[rank].encode()


def decode_proof(data: bytes) -> ProofPackage:
    """Decode for the member that the package names, and use what it holds."""
    decoded = ProofPackage.decode(data, PROOF, int.from_bytes(data[5:6], "big"))
    assert len(data) <= PROOF.largest_package
    with suppress(ShareError):
        decoded.verify(PROOF)
    for part in decoded.held:
        with suppress(ShareError):
            assert [stage.size for stage in part.stages(PROOF)] == list(PROOF.sizes)
    return decoded


POLICY = {
    "model": {"name": "lenet", "parameters": {"filters": 6, "bias": True, "rate": 0.5, "x": "é"}},
    "optimizer": {"name": "adamw", "learning_rate": 0.001},
    "data": {
        "input_shape": [28, 28, 1],
        "classes": 10,
        "mean": [0.1307],
        "std": [0.3081],
        "batch_size": 2,
    },
    "seeds": {"model": 0, "data": 2**53 - 1},
    "fraction_bits": 22,
    "loss_scale": 64,
    "audit_rate": 2**64,
    "commitment_scheme": "shares",
    "spu": {"version": "0.9.5", "exp_mode": "EXP_PADE"},
}
SGD = {"name": "sgd", "learning_rate": 1e-05, "momentum": 0.9}
PROVED = {
    "kind": "proved",
    "largest_lift": 22,
    "value_bits": 28,
    "error_bits": 44,
    "unit_bits": 46,
    "word_bits": 58,
    "range_bits": 9,
    "projections": 128,
}
PROVED_BOUNDARY = {
    "rule": "proved",
    "policy_hash": "0x" + "ab" * 32,
    "spu_version": "0.9.5",
    "coordinates": 10,
    "relative_tolerance": 4398047,
    "absolute_tolerance": 549756,
}
BOUNDARY = {
    "policy_hash": "0x" + "ab" * 32,
    "spu_version": "0.9.5",
    "coordinates": 10,
    "grid": [500, 980],
    "absolute": [3, 812],
    "relative": [1536, 15],
    "epsilon": 4,
    "infinity": 5000,
}


def decode_verdict(data: bytes) -> Verdict:
    passes, faults = [*parts_of(data), b"", b""][:2]
    return Verdict.decode(passes, faults)


PROTOCOL_TARGETS = {
    "share-package": Target(
        decode_package,
        SharePackage.encode,
        (ShareError,),
        tuple(share_package(scheme, rank) for scheme in Scheme for rank in range(3)),
        canonical=True,
    ),
    "delivery": Target(
        decode_any_delivery,
        encode_delivery,
        (ShareError,),
        (
            *(delivery(scheme, rank) for scheme in Scheme for rank in range(3)),
            delivery(Scheme.SHARES, 0, audited=False),
            delivery(Scheme.SHARES, 1, nodes=0),
            delivery(Scheme.MPC, 2, nodes=32),
        ),
        canonical=True,
    ),
    "proof-package": Target(
        decode_proof,
        ProofPackage.encode,
        (ShareError,),
        tuple(proof_package(rank) for rank in range(3)),
        canonical=True,
    ),
    "answer": Target(
        Answer.decode,
        Answer.encode,
        (ShareError,),
        (Answer(1, 2, 3, 2**127 - 2).encode(),),
        canonical=True,
        findings=((2**127 - 1).to_bytes(16, "little") * 4,),
    ),
    "field-elements": Target(
        Elements.decode,
        Elements.encode,
        (FieldError,),
        (Elements.of_python([0, 1, -1]).encode(), b""),
        canonical=True,
    ),
    "policy": Target(
        Policy.from_json,
        lambda policy: policy.canonical_json,
        (DocumentError,),
        tuple(
            Policy.from_mapping(fields).canonical_json
            for fields in (
                POLICY,
                POLICY | {"optimizer": SGD},
                POLICY | {"replay": PROVED, "loss_scale": 64 << 22},
            )
        ),
        canonical=True,
    ),
    "boundary": Target(
        boundary_from_json,
        lambda boundary: boundary.canonical_json,
        (DocumentError,),
        (
            PaperBoundary.from_mapping(BOUNDARY).canonical_json,
            ProvedBoundary.from_mapping(PROVED_BOUNDARY).canonical_json,
        ),
        canonical=True,
    ),
    "verdict": Target(
        decode_verdict,
        lambda verdict: joined(verdict.passes_bytes, verdict.faults_bytes),
        (ProtocolError,),
        (
            joined(b"\x05\x80", b""),
            joined(b"\x05\x80\0", b"\0\0\0\1\1\0\0\1\0" + bytes([FaultReason.REPLAY_OUTSIDE])),
        ),
    ),
}
