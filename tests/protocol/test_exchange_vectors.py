"""The exchange among members as the specification has it: its vectors, through the package."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import protocol_vectors as vectors
import pytest
from opfl_chain.protocol.exchange import (
    ANSWER_BYTES,
    Answers,
    Conclusion,
    Report,
    audited_places,
    decode_revealed,
    encode_revealed,
    proof_context,
    stated_subject,
    verdict_of,
)

from opfl_chain.mpc.audit.proved import proved_subject
from opfl_chain.protocol.delivery import Claim, joint_digest
from opfl_chain.protocol.errors import ShareError
from opfl_chain.protocol.identifiers import round_id_of
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.proof.package import ProofLeaves
from opfl_chain.protocol.published_answers import STAGES, audit_statement
from opfl_chain.protocol.statements import SigningDomain

VECTOR = vectors.load("exchange")
COUNT = len(VECTOR["clientIndices"])
DOMAIN = SigningDomain(VECTOR["chainId"], VECTOR["verifyingContract"])
RANKS = range(3)


def the_claims() -> list[Claim]:
    names = "clientIndices", "gradientCommitments", "datasetRoots", "audited"
    return [
        Claim(client, VECTOR["round"], commitment, root, audited)
        for client, commitment, root, audited in vectors.columns(VECTOR, *names)
    ]


def the_reports() -> list[Report]:
    bodies = enumerate(VECTOR["reports"])
    return [Report.decode(body, rank, VECTOR["subject"], COUNT) for rank, body in bodies]


def the_sheets(reports: list[Report]) -> list[dict[int, Answers]]:
    places = audited_places(the_claims(), reports)
    bodies = enumerate(VECTOR["revealed"])
    return [decode_revealed(body, rank, VECTOR["reports"], places) for rank, body in bodies]


def test_contexts() -> None:
    round_id = round_id_of(VECTOR["job"], VECTOR["round"])
    assert round_id == int(VECTOR["roundId"])
    names = "clientIndices", "gradientCommitments", "inputCommitments", "contexts"
    for client, gradient, given, context in vectors.columns(VECTOR, *names):
        found = proof_context(
            DOMAIN.separator, round_id, client, VECTOR["modelHash"], gradient, given
        )
        assert found == context


def test_digests_of_leaf_hashes() -> None:
    for leaves, proof, digest in vectors.columns(VECTOR, "leaves", "proofLeaves", "digests"):
        assert joint_digest(leaves, ProofLeaves(tuple(proof)) if proof else None) == digest


def test_subject() -> None:
    rules: Any = SimpleNamespace(
        policy=SimpleNamespace(hash=VECTOR["policyHash"]),
        boundary=SimpleNamespace(hash=VECTOR["boundaryHash"]),
    )
    statement: Any = SimpleNamespace(hash=VECTOR["statementHash"])
    numbers = np.frombuffer(VECTOR["weights"], "<f4")
    weights = {"b": numbers[1:], "a": numbers[:1]}
    assert proved_subject(rules, weights, the_claims(), statement) == VECTOR["subject"]


def test_commitments_to_answers() -> None:
    for rank, (both, commitment) in enumerate(vectors.columns(VECTOR, "answers", "commitments")):
        own, following = (Answer.decode(both[at : at + ANSWER_BYTES]) for at in (0, ANSWER_BYTES))
        assert Answers(rank, VECTOR["state"], own, following).commitment == commitment


def test_messages_are_read_and_written() -> None:
    reports = the_reports()
    assert [each.encode() for each in reports] == VECTOR["reports"]
    assert [stated_subject(body) for body in VECTOR["reports"]] == [(VECTOR["subject"], COUNT)] * 3
    sheets = enumerate(the_sheets(reports))
    found = [encode_revealed(rank, VECTOR["reports"], sheet) for rank, sheet in sheets]
    assert found == VECTOR["revealed"]


def test_verdict() -> None:
    reports, clients = the_reports(), VECTOR["clientIndices"]
    verdict, ends = verdict_of(the_claims(), reports, the_sheets(reports))
    found = {str(clients[place]): end.accepted for place, end in ends.items()}
    assert found == VECTOR["ends"]
    rejected = {client: 4 for client, accepted in found.items() if accepted is False}
    faults = {str(fault.client): int(fault.reason) for fault in verdict.faults}
    assert faults == VECTOR["charged"] | rejected
    passed = [int(client) for client, accepted in found.items() if accepted]
    unaudited = [claim.client for claim in the_claims() if not claim.audited]
    assert sorted(verdict.passed) == sorted(passed + unaudited)
    aborted = [end for end in ends.values() if end.accepted is None]
    assert aborted == [Conclusion(None, (1, 2), 2), Conclusion(None, (1,))]


def test_signed_digests() -> None:
    for stage, name, digests in zip(
        STAGES, ("reports", "revealed"), VECTOR["auditMessageDigests"], strict=True
    ):
        for body, digest in zip(VECTOR[name], digests, strict=True):
            statement = audit_statement(VECTOR["job"], VECTOR["round"], stage, body)
            assert statement.digest(DOMAIN) == digest


@pytest.mark.parametrize("change", [b"", b"\x00"])
def test_other_lengths_are_refused(change: bytes) -> None:
    reports = the_reports()
    places = audited_places(the_claims(), reports)
    report, answers = VECTOR["reports"][0], VECTOR["revealed"][0]
    with pytest.raises(ShareError):
        Report.decode(report + change if change else report[:-1], 0, VECTOR["subject"], COUNT)
    with pytest.raises(ShareError):
        decode_revealed(answers + change if change else answers[:-1], 0, VECTOR["reports"], places)


@pytest.mark.parametrize("rank", RANKS)
def test_messages_of_another_member_are_refused(rank: int) -> None:
    other = (rank + 1) % 3
    places = audited_places(the_claims(), the_reports())
    with pytest.raises(ShareError):
        Report.decode(VECTOR["reports"][rank], other, VECTOR["subject"], COUNT)
    with pytest.raises(ShareError):
        decode_revealed(VECTOR["revealed"][rank], other, VECTOR["reports"], places)
