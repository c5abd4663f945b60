"""Bundles of clients, messages among members, and a job's data on chain."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from fuzz_target import Target

from opfl_chain.numerics.field import Elements, FieldError
from opfl_chain.protocol.bundle import Bundle, answer_parts, check_bundle, contribution_parts, seal
from opfl_chain.protocol.bundle_form import BundleKind, Limits
from opfl_chain.protocol.commitments import Scheme, Subject
from opfl_chain.protocol.delivery import Expected
from opfl_chain.protocol.errors import (
    BundleError,
    DocumentError,
    ProtocolError,
    ShareError,
)
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.folding import LAST_VALUES, Answer
from opfl_chain.protocol.proof.package import ProofForm, ProofPackage, Sharing
from opfl_chain.protocol.proof.transcript import Transcript
from opfl_chain.protocol.sealing import SealingKey
from opfl_chain.protocol.shares import (
    SharedVector,
    SharePackage,
    commit,
    share_advice,
    verify_components,
)
from opfl_chain.protocol.unsealing import complain, complaint_stands, open_answer, open_contribution
from opfl_chain.protocol.verdict import Verdict
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


PROOF = ProofForm((3, 2, 1, 2, LAST_VALUES))


def sharing() -> Sharing:
    shared = Sharing((b"\1" * 32, b"\2" * 32), b"\3" * 32, Transcript(bytes(32)))
    for count in PROOF.sizes:
        shared.share(Elements.of_integers(np.arange(count)))
    return shared


def proof_package(rank: int) -> bytes:
    return sharing().packages()[rank].encode()


def decode_proof(data: bytes) -> ProofPackage:
    """Decode for the member that the package names, and use what it holds."""
    decoded = ProofPackage.decode(data, PROOF, int.from_bytes(data[5:6], "big"))
    with suppress(ShareError):
        decoded.verify(PROOF)
    for part in decoded.held:
        with suppress(ShareError):
            assert [stage.size for stage in part.stages(PROOF)] == list(PROOF.sizes)
    return decoded


EXPECTED = {
    "plain": Expected(Scheme.SHARES, 0, gradient_words=3, input_words=2),
    "guided": Expected(Scheme.MPC, 0, gradient_words=3, input_words=2, advice_words=1),
    "proved": Expected(Scheme.SHARES, 0, gradient_words=3, input_words=2, proof=PROOF),
}
SEALING_KEYS = [SealingKey(bytes([seat + 1]) * 32) for seat in range(3)]
CONTEXT = b"\7" * 32


def bundle(kind: BundleKind, replay: str, nodes: int = 2) -> bytes:
    expected = EXPECTED[replay]
    if kind is BundleKind.CONTRIBUTION:
        parts = contribution_parts(
            commit(expected.scheme, Subject.GRADIENT, np.arange(3), b"\1" * 32)
        )
    else:
        given = commit(expected.scheme, Subject.INPUT, np.arange(2), b"\2" * 32)
        advice = share_advice(expected.scheme, np.arange(1), b"\3" * 32)
        parts = answer_parts(
            given,
            [b"\4" * 32] * nodes,
            advice if replay == "guided" else None,
            sharing().packages() if replay == "proved" else None,
        )
    keys = [key.public for key in SEALING_KEYS]
    return seal(kind, CONTEXT, parts, keys, b"\5" * 32).encode()


def decode_bundle(data: bytes, replay: str) -> Bundle:
    """Decode the kind that the bundle names, and do with it all that members do."""
    kind = BundleKind.ANSWER if data[5:6] == b"\2" else BundleKind.CONTRIBUTION
    expected = EXPECTED[replay]
    limits = Limits.of(kind, expected)
    decoded = Bundle.decode(data, limits)
    assert len(data) <= limits.largest
    with suppress(ProtocolError):
        check_bundle(decoded, CONTEXT, expected)
    for seat, key in enumerate(SEALING_KEYS):
        opening = open_contribution if kind is BundleKind.CONTRIBUTION else open_answer
        with suppress(ProtocolError):
            opening(decoded, seat, key, CONTEXT, expected)
        with suppress(ProtocolError):
            complaint = complain(decoded, seat, key, CONTEXT)
            complaint_stands(decoded, key.public, complaint, CONTEXT, expected)
    return decoded


def bundle_target(replay: str) -> Target:
    return Target(
        lambda data: decode_bundle(data, replay),
        Bundle.encode,
        (BundleError,),
        (
            bundle(BundleKind.CONTRIBUTION, replay),
            *(bundle(BundleKind.ANSWER, replay, nodes) for nodes in (0, 2, 32)),
        ),
        canonical=True,
    )


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


PROTOCOL_TARGETS = {
    "share-package": Target(
        decode_package,
        SharePackage.encode,
        (ShareError,),
        tuple(share_package(scheme, rank) for scheme in Scheme for rank in range(3)),
        canonical=True,
    ),
    **{f"bundle-{replay}": bundle_target(replay) for replay in EXPECTED},
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
        Verdict.decode,
        lambda verdict: verdict.passes_bytes,
        (ProtocolError,),
        (b"\x05\x80", b"\x05\x80\0", b""),
    ),
}
