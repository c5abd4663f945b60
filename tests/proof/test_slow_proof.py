"""The fast implementation of proofs and a slow one agree bit by bit, and on what is wrong."""

from hypothesis import given, settings
from hypothesis import strategies as st
from slow_proof import SPEC, SlowProof
from small_statements import CONTEXT, Case, cases

from opfl_chain.protocol.proof.answers import Query, accepts
from opfl_chain.protocol.proof.closing import RESIDUAL_PROJECTIONS, WORD_DIGITS
from opfl_chain.protocol.proof.package import ProofComponent
from opfl_chain.protocol.proof.prover import Proof

ERRORS = [1, -1, 1 << 20, 1 << 45, 1 << 60, (SPEC.P + 1) // 2, -(1 << 100)]


def components(proof: Proof) -> dict[int, ProofComponent]:
    return {part.index: part for package in proof.packages for part in package.held}


def agree(case: Case, proof: Proof) -> tuple[SlowProof, bool]:
    """Compare everything that both implementations compute, and return the verdict."""
    rings = [
        [[int(word) for word in part] for part in shared.components]
        for shared in (case.gradient, case.training_input)
    ]
    slow = SlowProof(case.statement, CONTEXT, proof.packages, *rings)
    assert slow.encoded == [package.encode() for package in proof.packages]
    query = Query.of(case.statement, CONTEXT, proof.packages[0].leaves)
    assert [each.state for each in query.transcripts] == slow.states[4:]
    assert slow.polynomials() == slow.stated
    answers = []
    for k, part in components(proof).items():
        found = query.answer(part, case.gradient.components[k], case.training_input.components[k])
        assert list(found.words) == slow.answer(k)
        assert found.encode() == SPEC.field_bytes(slow.answer(k))
        answers.append(found)
    verdict = accepts(answers)
    assert verdict == SPEC.accepts([list(each.words) for each in answers])
    return slow, verdict


def violated(proof: Proof) -> set[str]:
    over = {WORD_DIGITS} if proof.usage.bounds["words"] > 1 else set()
    return set(proof.usage.broken) | over


@settings(max_examples=25)
@given(cases())
def test_fast_and_slow_agree_on_honest_advice(case: Case) -> None:
    proof = case.prove()
    slow, verdict = agree(case, proof)
    assert slow.broken() == violated(proof)
    assert verdict == proof.usage.holds == (not slow.broken())


@settings(max_examples=40)
@given(cases(), st.data())
def test_fast_and_slow_find_the_same_violations(case: Case, data: st.DataObject) -> None:
    groups = [g.name for g in case.statement.words if g.stage < 2 and g.kind != "free"]
    groups = [name for name in groups if name != RESIDUAL_PROJECTIONS]
    group, at = data.draw(st.sampled_from(groups)), data.draw(st.integers(0, 7))
    proof = case.prove(group, at, data.draw(st.sampled_from(ERRORS)))
    slow, verdict = agree(case, proof)
    assert slow.broken() == violated(proof)
    assert verdict == proof.usage.holds == (not slow.broken())
