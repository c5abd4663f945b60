"""The package against the vectors that docs/SPEC.md's own functions made."""

import subprocess
import sys
from dataclasses import astuple, replace
from fractions import Fraction

import numpy as np
import protocol_vectors as vectors
import pytest
from protocol_vectors import columns

from opfl_chain.chain.bindings.types import Pay, Phases
from opfl_chain.chain.terms import budget as budget_of
from opfl_chain.chain.terms import default_terms, schedule_of
from opfl_chain.protocol import hashing
from opfl_chain.protocol.advice import Advice, AdviceFormat
from opfl_chain.protocol.audit_exchange import Conclusion, verdict_of
from opfl_chain.protocol.bundle import content_hash
from opfl_chain.protocol.economics import BestResponse, split_penalty
from opfl_chain.protocol.errors import DocumentError, EncodingError
from opfl_chain.protocol.hashing import MerkleTree, verify_proof
from opfl_chain.protocol.identifiers import round_id_of
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
from opfl_chain.protocol.roll import Roll, RollEntry, decode_pairs, opening_of
from opfl_chain.protocol.signatures import is_canonical
from opfl_chain.protocol.statements import (
    Answer,
    AuditOutcome,
    Contribution,
    MemberFaultStatement,
    MemberMessage,
    RoundResult,
    SeatChange,
    SigningDomain,
)
from opfl_chain.protocol.statements import Roll as RollStatement
from opfl_chain.protocol.verdict import Outcome, Verdict, has_passed, passed_clients, verdict_hash
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

TERMS = default_terms(
    policy_hash=bytes(32),
    boundary_hash=bytes(32),
    model_hash=bytes(32),
    members=("0x1", "0x2", "0x3"),
    treasury="0x4",
    audit_rate=1,
    rounds=1,
    phases=Phases(1, 1, 5, 2, 1, 17, 4, 1),
)


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


def test_opening():
    vector = vectors.load("opening")
    names = "jobs", "rounds", "roundIds", "modelHashes", "previousBlocks", "openings"
    for job, round_, round_id, model, block, opening in columns(vector, *names):
        here = vector["chainId"], vector["roundsContract"]
        assert round_id_of(int(job), round_) == int(round_id)
        assert opening_of(*here, int(job), round_, model, block) == opening


def test_roll():
    vector = vectors.load("roll")
    for case in vector["cases"]:
        names = "clientIndices", "clients", "commitments", "restHashes", "contentHashes"
        rows = columns(case, *names)
        assert all(content_hash(row[2], row[3]) == row[4] for row in rows)
        entries = [RollEntry(i, client, found, content) for i, client, found, _, content in rows]
        roll = Roll.of(reversed(entries))
        assert_is_tree(roll.tree, case)
        assert (roll.root, roll.count) == (case["root"], case["count"])
        assert (roll.pairs, roll.pairs_hash) == (case["pairs"], case["pairsHash"])
        assert decode_pairs(roll.pairs) == columns(case, "clientIndices", "commitments")
        for entry, proof in zip(entries, case["proofs"], strict=True):
            assert list(roll.proof(entry.client)) == proof
        hidden = Roll(roll.entries, is_public=False)
        assert (hidden.root, hidden.pairs_hash) == (roll.root, vector["hashOfNoPairs"])


def test_beacon():
    vector = vectors.load("beacon")
    assert vector["signatureDst"] == SIGNATURE_DST
    assert vector["possessionDst"] == PROOF_OF_POSSESSION_DST
    chain_id, beacon = vector["chainId"], vector["beacon"]
    for job, round_, opening, root, message in columns(
        vector, "jobs", "rounds", "openings", "roots", "messages"
    ):
        assert beacon_message(chain_id, beacon, int(job), round_, opening, root) == message
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
        verdict = Verdict.of(case["passed"])
        assert verdict.passes_bytes == case["passes"]
        assert verdict.hash == verdict_hash(case["passes"]) == case["hash"]
        assert Verdict.decode(case["passes"]) == verdict
        ends = dict(columns(case, "audited", "outcomes"))
        conclusions = {
            client: Conclusion(Outcome(end) if end else None) for client, end in ends.items()
        }
        assert verdict_of(case["roll"], set(ends), conclusions) == verdict
        assert [i for i in case["roll"] if has_passed(case["passes"], i)] == case["passed"]
    assert verdict_hash(vector["zeroPaddedPasses"]) == vector["zeroPaddedHash"]
    assert passed_clients(vector["zeroPaddedPasses"]) == {1}


def test_outcomes_have_the_numbers_that_members_sign():
    names = columns(vectors.load("verdict"), "outcomeNames", "outcomeNumbers")
    assert [(each.name.lower(), each.value) for each in Outcome] == names


def test_statements():
    vector = vectors.load("statements")
    domain = SigningDomain(vector["chainId"], vector["verifyingContract"])
    assert domain.separator == vector["domainSeparator"]
    kinds = {
        "contribution": (Contribution, "clients", "contentHashes"),
        "answer": (Answer, "clients", "contentHashes"),
        "roll": (RollStatement, "roots", "counts", "pairsHashes"),
        "roundResult": (RoundResult, "verdictHashes", "aggregateHashes", "modelHashes"),
        "auditOutcome": (AuditOutcome, "clients", "outcomes"),
        "memberMessage": (MemberMessage, "slots", "contentHashes"),
        "memberFault": (MemberFaultStatement, "members", "faults"),
    }
    for name, (kind, *fields) in kinds.items():
        for job, round_, opening, *values, digest in columns(
            vector, "jobs", "rounds", "openings", *fields, f"{name}Digests"
        ):
            assert kind(int(job), round_, opening, *values).digest(domain) == digest, name
    for job, epoch, seat, standby, digest in columns(
        vector, "jobs", "epochs", "seats", "standbys", "seatChangeDigests"
    ):
        assert SeatChange(int(job), epoch, seat, standby).digest(domain) == digest


def test_penalties():
    vector = vectors.load("penalties")
    names = "amounts", "recipients", "compensations", "treasuryShares"
    for amount, recipients, compensation, share, burnt, treasury, paid, compensated in columns(
        vector, *names, "burnt", "treasuries", "paid", "compensated"
    ):
        split = split_penalty(int(amount), recipients, int(compensation), share)
        assert (split.burnt, split.treasury) == (int(burnt), int(treasury))
        assert list(split.paid) == [int(each) for each in paid]
        assert sum(split.paid) == int(compensated)


def test_deadlines():
    vector = vectors.load("deadlines")
    for lengths, opened, deadlines in columns(vector, "lengths", "openedAt", "deadlines"):
        schedule = schedule_of(Phases(1, *lengths), opened)
        assert list(astuple(schedule)) == deadlines


def test_charges():
    vector = vectors.load("charges")
    for outcome, first in columns(vector, "outcomes", "endsFrom"):
        assert [Outcome(outcome).ends_from(last) for last in vector["responses"]] == first


def test_rewards():
    vector = vectors.load("rewards")
    names = "rounds", "places", "clientPays", "memberPays"
    for rounds, places, client, member, budget in columns(vector, *names, "budgets"):
        pay = Pay(int(client), int(member))
        terms = replace(TERMS, rounds=rounds, max_clients=places, pay=pay)
        assert budget_of(terms) == int(budget)


def test_deposits():
    vector = vectors.load("deposits")
    names = "savedCosts", "outsideGains", "pays", "honestRejections", "cheapestPenalties"
    for rate, *values, deposit in columns(vector, "auditRates", *names, "margins", "deposits"):
        assert BestResponse(*values).required_deposit(rate) == deposit
