"""The exchange among members as the specification has it: its vectors, through the package."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import protocol_vectors as vectors
import pytest
from protocol_vectors import columns

from opfl_chain.mpc.audit.proved import proved_subject
from opfl_chain.protocol.audit_exchange import (
    ANSWER_BYTES,
    Answers,
    RefereeReveal,
    Report,
    Reveal,
    bound_by,
    conclude,
    fits,
    proof_context,
)
from opfl_chain.protocol.delivery import Claim
from opfl_chain.protocol.echo import Slot
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import round_id_of
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.sealing import Complaint
from opfl_chain.protocol.statements import MemberMessage, SigningDomain

VECTOR = vectors.load("exchange")
CLIENTS = VECTOR["clientIndices"]
DOMAIN = SigningDomain(VECTOR["chainId"], VECTOR["verifyingContract"])
HONEST = CLIENTS[0]


def test_contexts() -> None:
    round_id = round_id_of(VECTOR["job"], VECTOR["round"])
    assert round_id == int(VECTOR["roundId"])
    names = "clientIndices", "gradientCommitments", "inputCommitments", "contexts"
    for client, gradient, given, context in columns(VECTOR, *names):
        found = proof_context(
            DOMAIN.separator, round_id, VECTOR["opening"], client, gradient, given
        )
        assert found == context


def test_subject() -> None:
    rules: Any = SimpleNamespace(
        policy=SimpleNamespace(hash=VECTOR["policyHash"]),
        boundary=SimpleNamespace(hash=VECTOR["boundaryHash"]),
    )
    statement: Any = SimpleNamespace(hash=VECTOR["statementHash"])
    numbers = np.frombuffer(VECTOR["weights"], "<f4")
    weights = {"b": numbers[1:], "a": numbers[:1]}
    names = "clientIndices", "gradientCommitments", "datasetRoots"
    claims = [
        Claim(client, VECTOR["round"], commitment, root, True)
        for client, commitment, root in columns(VECTOR, *names)
    ]
    stated = proved_subject(rules, weights, claims, statement)
    assert keccak256(stated, *VECTOR["answerHashes"]) == VECTOR["subject"]


def test_commitments_to_words() -> None:
    for seat, (both, commitment) in enumerate(columns(VECTOR, "words", "commitments")):
        own, following = (Answer.decode(both[at : at + ANSWER_BYTES]) for at in (0, ANSWER_BYTES))
        assert Answers(seat, own, following).commitment == commitment


def test_messages_are_read_and_written() -> None:
    for seat, (report, words) in enumerate(columns(VECTOR, "reports", "revealed")):
        read = Report.decode(report, seat, VECTOR["subject"], CLIENTS)
        assert read.encode() == report
        assert Report.decode(report, seat) == read
        revealed = Reveal.decode(words, seat, CLIENTS)
        assert revealed.encode() == words
        for client, each in revealed.answers.items():
            assert read.rows[client].commitment == each.commitment
    assert isinstance(read.rows[CLIENTS[-1]], Complaint)


@pytest.mark.parametrize("case", VECTOR["fitting"], ids=lambda case: case["why"])
def test_words_fit_a_report(case: dict[str, Any]) -> None:
    report = Report.decode(case["report"], case["seat"])
    assert fits(report, case["words"]) == case["fits"]
    (seat,) = bound = bound_by({case["seat"]: report})
    assert bound[seat](case["words"]) == case["fits"]


def test_signed_digests() -> None:
    for slot, name, digests in zip(
        (Slot.REPORT, Slot.REVEAL), ("reports", "revealed"), VECTOR["messageDigests"], strict=True
    ):
        for body, digest in zip(VECTOR[name], digests, strict=True):
            here = VECTOR["job"], VECTOR["round"], VECTOR["opening"]
            assert MemberMessage(*here, slot, keccak256(body)).digest(DOMAIN) == digest


@pytest.mark.parametrize("case", VECTOR["conclusions"], ids=lambda case: case["why"])
def test_conclusions(case: dict[str, Any]) -> None:
    rows = {
        seat: Report.decode(data, seat).rows[HONEST]
        for seat, data in columns(case, "seats", "reports")
    }
    words = {
        seat: Reveal.decode(data, seat).answers[HONEST]
        for seat, data in columns(case, "wordSeats", "words")
    }
    referee = RefereeReveal.decode(case["referee"], 3)
    assert referee.encode() == case["referee"]
    found = conclude(rows, words, case["standing"], referee.answers.get(HONEST, {}))
    assert (found.outcome or 0) == case["outcome"]
    disputes = {each.component: list(each.seats) for each in found.disputes}
    assert disputes == dict(columns(case, "disputed", "disputedSeats"))
    assert list(found.unconfirmed) == case["unconfirmed"]
    assert list(found.liars) == case["liars"]


@pytest.mark.parametrize("change", [b"", b"\x00"])
def test_other_lengths_are_refused(change: bytes) -> None:
    report, words = VECTOR["reports"][0], VECTOR["revealed"][0]
    with pytest.raises(ProtocolError):
        Report.decode(report + change if change else report[:-1], 0)
    with pytest.raises(ProtocolError):
        Reveal.decode(words + change if change else words[:-1], 0)


@pytest.mark.parametrize("seat", range(3))
def test_messages_of_another_member_are_refused(seat: int) -> None:
    other = (seat + 1) % 3
    with pytest.raises(ProtocolError, match=f"expected b'OPFR', 2 and {other}"):
        Report.decode(VECTOR["reports"][seat], other)
    with pytest.raises(ProtocolError, match=f"expected b'OPFA', 2 and {other}"):
        Reveal.decode(VECTOR["revealed"][seat], other)


def test_messages_about_something_else_are_refused() -> None:
    report, words = VECTOR["reports"][1], VECTOR["revealed"][1]
    with pytest.raises(ProtocolError, match="reports on other answers"):
        Report.decode(report, 1, bytes(32), CLIENTS)
    with pytest.raises(ProtocolError, match="is not a subject of this session"):
        Report.decode(report, 1, VECTOR["subject"], CLIENTS[:-1])
    with pytest.raises(ProtocolError, match="is not a subject of this session"):
        Reveal.decode(words, 1, CLIENTS[:-1])


def test_a_complaint_in_the_name_of_another_is_refused() -> None:
    complaint = Report.decode(VECTOR["reports"][2], 2).rows[CLIENTS[-1]]
    forged = Report(1, VECTOR["subject"], {CLIENTS[-1]: complaint}).encode()
    with pytest.raises(ProtocolError, match="member 1 complains in the name of member 2"):
        Report.decode(forged, 1)


def test_word_that_is_not_canonical_is_a_typed_error() -> None:
    """Else the message of one member would end the daemons of both others."""
    words = VECTOR["revealed"][1]
    with pytest.raises(ProtocolError, match=r"answer\[3\] is 0xf+, it must be below"):
        Reveal.decode(words[:-16] + b"\xff" * 16, 1)
