"""Packages and answers that are malformed, or of another proof, are refused with the reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from proof_steps import CONTEXT, cheating, components, honest_step

from opfl_chain.numerics.field import MODULUS
from opfl_chain.protocol.audit_exchange import Answers, ReportRow, conclude
from opfl_chain.protocol.errors import ShareError
from opfl_chain.protocol.proof.answers import Query
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.proof.package import ProofComponent, ProofForm, ProofPackage
from opfl_chain.protocol.verdict import Outcome

STEP = honest_step()
FORM = ProofForm.of(STEP.statement)
PACKAGES = cheating(STEP).prove().packages


@pytest.mark.parametrize("rank", range(3))
def test_a_package_is_read_as_it_was_sent(rank: int) -> None:
    data = PACKAGES[rank].encode()
    package = ProofPackage.decode(data, FORM, rank)
    assert package == PACKAGES[rank] and package.encode() == data
    package.verify(FORM)


@pytest.mark.parametrize("rank", range(3))
def test_a_package_for_another_member_is_refused(rank: int) -> None:
    data = PACKAGES[rank].encode()
    for other in {0, 1, 2} - {rank}:
        with pytest.raises(ShareError, match=f"proof is for member {rank}"):
            ProofPackage.decode(data, FORM, other)
    with pytest.raises(ShareError, match="rank is 3"):
        ProofPackage.decode(data, FORM, 3)


@pytest.mark.parametrize("rank", range(3))
def test_a_package_of_another_size_is_refused(rank: int) -> None:
    data = PACKAGES[rank].encode()
    for wrong in (data[:-1], data[:-16], data + b"\0", data + bytes(16), data[:20]):
        with pytest.raises(ShareError, match=r"proof has .* bytes, this statement takes"):
            ProofPackage.decode(wrong, FORM, rank)
    for wrong in (b"", data[:5], data[:13]):
        with pytest.raises(ShareError, match="at least 14 bytes"):
            ProofPackage.decode(wrong, FORM, rank)


def test_a_package_of_another_statement_is_refused() -> None:
    other = ProofForm.of(honest_step(batch=4).statement)
    with pytest.raises(ShareError, match="words, expected: member 1"):
        ProofPackage.decode(PACKAGES[1].encode(), other, 1)


def test_a_package_of_another_kind_is_refused() -> None:
    data = PACKAGES[0].encode()
    for wrong in (b"OPFS" + data[4:], data[:4] + b"\2" + data[5:]):
        with pytest.raises(ShareError, match="a proof starts with"):
            ProofPackage.decode(wrong, FORM, 0)


@pytest.mark.parametrize("word", [MODULUS, MODULUS + 1, (1 << 128) - 1])
@pytest.mark.parametrize("place", [0, FORM.words - 1])
def test_words_that_are_not_canonical_are_refused(word: int, place: int) -> None:
    sent = bytearray(PACKAGES[1].held[1].sent)
    sent[32 + 16 * place : 48 + 16 * place] = word.to_bytes(16, "little")
    query = Query.of(STEP.statement, CONTEXT, PACKAGES[0].leaves)
    gradient, inputs = components(STEP.gradient, 1)[2], components(STEP.inputs, 5)[2]
    with pytest.raises(ShareError, match=r"it must be below 2\^127 - 1"):
        query.answer(ProofComponent(2, bytes(sent)), gradient, inputs)


def test_a_component_of_another_size_has_no_answer() -> None:
    query = Query.of(STEP.statement, CONTEXT, PACKAGES[0].leaves)
    gradient, inputs = components(STEP.gradient, 1), components(STEP.inputs, 5)
    sent = PACKAGES[1].held[1].sent
    for wrong in (sent[:-16], sent + bytes(16), sent[:-3], sent[:32], b""):
        with pytest.raises(ShareError):
            query.answer(ProofComponent(2, wrong), gradient[2], inputs[2])
    with pytest.raises(ShareError, match="component 0 of the proof has 5 bytes"):
        query.answer(ProofComponent(0, b"short"), gradient[0], inputs[0])


def test_shares_of_another_size_have_no_answer() -> None:
    query = Query.of(STEP.statement, CONTEXT, PACKAGES[0].leaves)
    part = PACKAGES[0].held[0]
    gradient, inputs = components(STEP.gradient, 1)[0], components(STEP.inputs, 5)[0]
    for wrong in (inputs[:-1], inputs[:0], np.append(inputs, inputs[:1])):
        with pytest.raises(ShareError, match="the input has"):
            query.answer(part, gradient, wrong)
    with pytest.raises(ShareError, match="the gradient has"):
        query.answer(part, gradient[:-1], inputs)


@pytest.mark.parametrize("place", range(4))
def test_an_answer_that_is_not_canonical_is_refused(place: int) -> None:
    data = bytearray(Answer(1, 2, 3, MODULUS - 1).encode())
    assert Answer.decode(bytes(data)) == Answer(1, 2, 3, MODULUS - 1)
    data[16 * place : 16 * place + 16] = MODULUS.to_bytes(16, "little")
    with pytest.raises(ShareError, match=rf"answer\[{place}\] is 0x7f"):
        Answer.decode(bytes(data))


def test_an_answer_of_another_size_is_refused() -> None:
    data = Answer(1, 2, 3, 4).encode()
    for wrong in (b"", data[:-1], data[:-16], data + bytes(16)):
        with pytest.raises(ShareError):
            Answer.decode(wrong)


def test_coins_of_another_number_of_stages_are_refused() -> None:
    leaves = PACKAGES[0].leaves
    with pytest.raises(ShareError, match="coins were tossed 1 times, the proof has"):
        Query.of(STEP.statement, CONTEXT, leaves, [b"coin"])
    fewer = replace(leaves, hashes=leaves.hashes[:-1])
    with pytest.raises(ShareError, match="leaf hashes"):
        Query.of(STEP.statement, CONTEXT, fewer)


def test_an_answer_to_another_challenge_is_a_lie() -> None:
    """A member that answers on another transcript differs from both other holders."""
    gradient, inputs = components(STEP.gradient, 1), components(STEP.inputs, 5)
    right, other = (
        Query.of(STEP.statement, context, PACKAGES[0].leaves) for context in (CONTEXT, bytes(32))
    )

    def answers(seat: int, query: Query) -> Answers:
        held = PACKAGES[seat].held
        found = {p.index: query.answer(p, gradient[p.index], inputs[p.index]) for p in held}
        return Answers.of(seat, found)

    given = {seat: answers(seat, right) for seat in range(3)}
    rows = {seat: ReportRow(each.commitment) for seat, each in given.items()}
    assert conclude(rows, given).outcome is Outcome.PASSED
    wrong = answers(1, other)
    # Committed to the one and answering to the other, it is named alone.
    assert conclude(rows, {**given, 1: wrong}).liars == (1,)
    rows[1] = ReportRow(wrong.commitment)
    end = conclude(rows, {**given, 1: wrong})
    assert [(each.component, each.seats) for each in end.disputes] == [(1, (0, 1)), (2, (1, 2))]
    assert end.outcome is None
    true = {1: given[0].following, 2: given[2].own}
    assert conclude(rows, {**given, 1: wrong}, referee=true).liars == (1,)
    part = PACKAGES[1].held[0]
    claimed = {0: given[0].following, 1: wrong.own}
    found = right.answer(part, gradient[1], inputs[1])
    assert [seat for seat, given in claimed.items() if given != found] == [1]
