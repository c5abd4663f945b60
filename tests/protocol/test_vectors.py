"""The package against the vectors that docs/SPEC.md's own functions made."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import protocol_vectors as vectors
import pytest
from protocol_vectors import columns

from opfl_chain.protocol import hashing
from opfl_chain.protocol.accumulator import (
    BatchCommitment,
    DirectCommitment,
    accumulate,
    accumulate_all,
    batch_tree,
    initial_accumulator,
)
from opfl_chain.protocol.advice import Advice, AdviceFormat
from opfl_chain.protocol.economics import split_slash
from opfl_chain.protocol.errors import DocumentError, EncodingError, VerdictError
from opfl_chain.protocol.hashing import MerkleTree, keccak256, verify_proof
from opfl_chain.protocol.inputs import InputFormat, dataset_leaf, dataset_tree
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.randomness import (
    PROOF_OF_POSSESSION_DST,
    SIGNATURE_DST,
    audit_rate_of,
    audit_ticket,
    beacon_message,
    is_audited,
    proof_of_possession_message,
    seed_of_signature,
)
from opfl_chain.protocol.ring import FixedPoint, words_of_bytes
from opfl_chain.protocol.signatures import is_canonical
from opfl_chain.protocol.statements import (
    Acquittal,
    DeliveryEnvelope,
    DeliveryReceipt,
    GradientCommitment,
    RoundResult,
    SigningDomain,
)
from opfl_chain.protocol.verdict import FaultReason, Verdict, verdict_hash
from opfl_chain.rules.guided import check_guided_replay, excess_of
from opfl_chain.rules.paper import (
    PaperBoundary,
    check_replay,
    quanta_above,
    quantiles,
    relative_factor,
)
from opfl_chain.rules.quantiles import need
from opfl_chain.rules.registry import boundary_from_json


def test_vectors_are_what_the_specification_says():
    command = [sys.executable, str(vectors.ROOT / "scripts" / "make_vectors.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_tags():
    for name, value in columns(vectors.load("tags"), "names", "tags"):
        assert hashing.tag(name) == value
        assert getattr(hashing, "TAG_" + name.replace("-", "_").upper()) == value


def assert_is_tree(tree: MerkleTree, vector: dict) -> None:
    assert tree.root == vector["root"]
    assert list(tree.leaves) == vector["leaves"]
    for i, proof in enumerate(vector["proofs"]):
        assert list(tree.proof(i)) == proof
        assert verify_proof(proof, vector["root"], vector["leaves"][i])


def test_merkle():
    vector = vectors.load("merkle")
    for size, case in columns(vector, "sizes", "cases"):
        assert len(case["leaves"]) == size
        assert_is_tree(MerkleTree.of(case["leaves"]), case)


def test_dataset():
    vector = vectors.load("dataset")
    assert_is_tree(dataset_tree(vector["commitments"]), vector)
    assert dataset_leaf(int(vector["farRound"]), vector["commitments"][0]) == vector["farLeaf"]


def test_fixed_point():
    vector = vectors.load("fixed_point")
    for real, f, scale, word in columns(vector, "reals", "fractionBits", "scales", "words"):
        array = np.array([float(real)])
        fixed_point = FixedPoint(f, scale)
        assert fixed_point.encode({"x": array}).tolist() == [int(word)]
        assert (
            abs(Fraction(float(real)) - Fraction(int(word), scale << f)) <= fixed_point.quantum / 2
        )


def test_reals_without_a_word_are_refused():
    vector = vectors.load("fixed_point")
    for real, f, scale in columns(vector, "refusedReals", "refusedFractionBits", "refusedScales"):
        with pytest.raises(EncodingError, match=r"^x\[0\] is "):
            FixedPoint(f, scale).encode({"x": np.array([float(real)])})


def test_inputs():
    for case in vectors.load("inputs")["cases"]:
        batch, classes = case["batch"], case["classes"]
        features = np.array([float(x) for x in case["features"]], np.float32).reshape(batch, -1)
        layout = InputFormat(features.shape, (batch,), classes, case["fractionBits"])
        assert layout.encode(features, np.array(case["labels"])).tobytes() == case["encoded"]
        assert 8 * layout.words == len(case["encoded"])


def test_policy():
    vector = vectors.load("policy")
    for text, digest in columns(vector, "texts", "hashes"):
        policy = Policy.from_json(text.encode())
        assert policy.canonical_json == text.encode()
        assert policy.hash == digest


def test_malformed_policies_are_refused():
    for text, why in columns(vectors.load("policy"), "malformed", "malformedWhy"):
        with pytest.raises(DocumentError):
            Policy.from_json(text.encode())
            pytest.fail(f"accepted: {why}")


def test_boundary():
    vector = vectors.load("boundary")
    for text, digest in columns(vector, "texts", "hashes"):
        boundary = boundary_from_json(text.encode())
        assert boundary.canonical_json == text.encode()
        assert boundary.hash == digest
    quanta_per_unit = FixedPoint(vector["fractionBits"], vector["scale"]).words_per_unit
    for bound, quanta in columns(vector, "absolute", "absoluteQuanta"):
        assert quanta_above("absolute", float(bound), quanta_per_unit) == int(quanta)
    for bound, factor in columns(vector, "relative", "relativeFactors"):
        assert relative_factor(float(bound), int(vector["infinity"])) == int(factor)
    for p, count, needed in columns(vector, "needGrid", "needCounts", "needs"):
        assert need(p, count) == needed


def test_malformed_boundaries_are_refused():
    for text, why in columns(vectors.load("boundary"), "malformed", "malformedWhy"):
        with pytest.raises(DocumentError):
            boundary_from_json(text.encode())
            pytest.fail(f"accepted: {why}")


def test_profile():
    vector = vectors.load("profile")
    for case in vector["cases"]:
        boundary = PaperBoundary.from_json(case["boundary"].encode())
        gradient = words_of_bytes("gradient", case["gradient"])
        report = check_replay(boundary, gradient, words_of_bytes("replay", case["replay"]))
        assert [t.count for t in report.absolute] == case["absoluteCounts"], case["why"]
        assert [t.count for t in report.relative] == case["relativeCounts"], case["why"]
        assert report.beyond == case["beyond"], case["why"]
        assert report.passed is case["inside"], case["why"]
    values, grid = np.array(vector["quantileValues"]), vector["quantileGrid"]
    assert quantiles(values, grid).tolist() == vector["quantiles"]


def test_guided():
    vector = vectors.load("guided")
    for case in vector["cases"]:
        boundary = boundary_from_json(case["boundary"].encode())
        gradient = words_of_bytes("gradient", case["gradient"])
        replay = words_of_bytes("replay", case["replay"])
        found = excess_of(boundary, gradient, replay, case["headroom"])
        assert found.unit == case["unit"], case["why"]
        assert [str(each) for each in found.units] == case["units"], case["why"]
        report = check_guided_replay(boundary, gradient, replay, case["headroom"])
        assert report.passed is case["inside"], case["why"]
    form = AdviceFormat(2, 3, 2, vector["fractionBits"])
    advice = Advice(np.array([True, False]), 2, np.array([1.5, -0.25]))
    assert form.encode(advice).tobytes() == vector["encodedAdvice"]


def test_batch():
    vector = vectors.load("batch")
    commitments = columns(vector, "clients", "commitments")
    assert_is_tree(batch_tree(vector["job"], vector["round"], commitments), vector)


def test_accumulator():
    vector = vectors.load("accumulator")
    assert len(vector["cases"]) == vector["count"]
    for case in vector["cases"]:
        initial = initial_accumulator(
            vector["chainId"], vector["jobs"], int(case["job"]), case["round"], case["modelHash"]
        )
        assert initial == case["initial"]
        commitments = [
            DirectCommitment(client, value) if kind == 1 else BatchCommitment(value, count)
            for kind, client, value, count in columns(case, "kinds", "clients", "values", "counts")
        ]
        accumulator = initial
        for commitment, expected in zip(commitments, case["accumulators"], strict=True):
            accumulator = accumulate(accumulator, commitment)
            assert accumulator == expected
        assert accumulate_all(initial, commitments) == case["final"]


def test_beacon():
    vector = vectors.load("beacon")
    assert vector["signatureDst"] == SIGNATURE_DST
    assert vector["possessionDst"] == PROOF_OF_POSSESSION_DST
    chain_id, beacon = vector["chainId"], vector["beacon"]
    for job, round_, accumulator, message in columns(
        vector, "jobs", "rounds", "accumulators", "messages"
    ):
        assert beacon_message(chain_id, beacon, int(job), round_, accumulator) == message
    for member, key, message in columns(vector, "members", "publicKeys", "possessionMessages"):
        assert proof_of_possession_message(chain_id, beacon, member, key) == message
    for signature, seed in columns(vector, "signatures", "seeds"):
        assert seed_of_signature(signature) == seed


def test_sampling():
    vector = vectors.load("sampling")
    for seed, client, rate, ticket, audited in columns(
        vector, "seeds", "clients", "rates", "tickets", "audited"
    ):
        assert audit_ticket(seed, client) == int(ticket)
        assert is_audited(seed, client, int(rate)) is audited
    for probability, rate in columns(vector, "probabilities", "probabilityRates"):
        assert audit_rate_of(float(probability)) == int(rate)


def test_signatures():
    vector = vectors.load("signatures")
    assert {True, False} == set(vector["canonical"])
    for signature, canonical in columns(vector, "signatures", "canonical"):
        assert is_canonical(signature) is canonical


def test_verdict():
    vector = vectors.load("verdict")
    for case in vector["cases"]:
        reasons = columns(case, "faultClients", "faultReasons")
        faults = {client: FaultReason(reason) for client, reason in reasons}
        verdict = Verdict.of(frozenset(case["passed"]), faults)
        assert verdict.passes_bytes == case["passes"]
        assert verdict.faults_bytes == case["faults"]
        assert verdict.hash == case["hash"]
        assert Verdict.decode(case["passes"], case["faults"]) == verdict
    assert verdict_hash(vector["zeroPaddedPasses"], b"") == vector["zeroPaddedHash"]
    assert Verdict.decode(vector["zeroPaddedPasses"], b"").passed == {1}


def test_malformed_verdicts_are_refused():
    vector = vectors.load("verdict")
    for passes, faults, why in columns(
        vector, "malformedPasses", "malformedFaults", "malformedWhy"
    ):
        with pytest.raises(VerdictError):
            Verdict.decode(passes, faults)
            pytest.fail(f"accepted: {why}")


def test_statements():
    vector = vectors.load("statements")
    domain = SigningDomain(vector["chainId"], vector["verifyingContract"])
    assert domain.separator == vector["domainSeparator"]
    ids = [(int(job), round_) for job, round_ in columns(vector, "jobs", "rounds")]
    clients = vector["clients"]
    for i, (job, round_) in enumerate(ids):
        commitment = GradientCommitment(job, round_, clients[i], vector["commitments"][i])
        delivery = keccak256(vector["deliveries"][i])
        envelope = DeliveryEnvelope(job, round_, clients[i], vector["members"][i], delivery)
        receipt = DeliveryReceipt(job, round_, clients[i], vector["audited"][i])
        result = RoundResult(
            job,
            round_,
            vector["verdictHashes"][i],
            vector["aggregateHashes"][i],
            vector["modelHashes"][i],
        )
        acquittal = Acquittal(job, round_, clients[i])
        assert commitment.digest(domain) == vector["gradientCommitmentDigests"][i]
        assert envelope.digest(domain) == vector["deliveryEnvelopeDigests"][i]
        assert receipt.digest(domain) == vector["deliveryReceiptDigests"][i]
        assert acquittal.digest(domain) == vector["acquittalDigests"][i]
        assert result.digest(domain) == vector["roundResultDigests"][i]


def test_slashing():
    vector = vectors.load("slashing")
    for amount, burn_bps, treasury_bps, members, burn, treasury, each in columns(
        vector,
        "amounts",
        "burnBps",
        "treasuryBps",
        "members",
        "burns",
        "treasuries",
        "eachMember",
    ):
        split = split_slash(int(amount), burn_bps, treasury_bps, members)
        assert (split.burn, split.treasury, split.each_member) == (
            int(burn),
            int(treasury),
            int(each),
        )
