"""The package against the vectors that docs/SPEC.md's own functions made."""

import subprocess
import sys

import protocol_vectors as vectors
import pytest
from protocol_vectors import columns

from opfl_chain.protocol import hashing
from opfl_chain.protocol.accumulator import (
    BatchCommitment,
    DirectCommitment,
    accumulate,
    accumulate_all,
    initial_accumulator,
)
from opfl_chain.protocol.batch import batch_tree
from opfl_chain.protocol.beacon import (
    PROOF_OF_POSSESSION_DST,
    SIGNATURE_DST,
    beacon_message,
    proof_of_possession_message,
    seed_of_signature,
)
from opfl_chain.protocol.dataset import dataset_leaf, dataset_tree, input_commitment
from opfl_chain.protocol.errors import VerdictError
from opfl_chain.protocol.gradient import commit_to_components, gradient_commitment, share_hash
from opfl_chain.protocol.merkle import MerkleTree, verify_proof
from opfl_chain.protocol.sampling import audit_rate_of, audit_ticket, is_audited
from opfl_chain.protocol.slashing import split_slash
from opfl_chain.protocol.statements import (
    Acquittal,
    DeliveryReceipt,
    GradientCommitment,
    RoundResult,
    SigningDomain,
)
from opfl_chain.protocol.verdict import FaultReason, Verdict, verdict_hash


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
    for salt, data, commitment in columns(vector, "salts", "inputs", "commitments"):
        assert input_commitment(salt, data) == commitment
    assert_is_tree(dataset_tree(vector["commitments"]), vector)
    assert dataset_leaf(int(vector["farRound"]), vector["commitments"][0]) == vector["farLeaf"]


def test_shares():
    vector = vectors.load("shares")
    components = columns(vector, "components0", "components1", "components2")
    salts = columns(vector, "salts0", "salts1", "salts2")
    hashes = columns(vector, "hashes0", "hashes1", "hashes2")
    for i, commitment in enumerate(vector["commitments"]):
        for k in range(3):
            assert share_hash(k, salts[i][k], components[i][k]) == hashes[i][k]
        assert gradient_commitment(hashes[i]) == commitment
        assert commit_to_components(components[i], salts[i]) == commitment


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
