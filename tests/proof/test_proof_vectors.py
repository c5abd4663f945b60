"""Proofs as the specification has them: its vectors, through the package."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from protocol_vectors import load
from slow_proof import written_out

from opfl_chain.numerics.field import Elements
from opfl_chain.numerics.projections import project_words
from opfl_chain.protocol.errors import ShareError
from opfl_chain.protocol.proof.answers import Query, accepts
from opfl_chain.protocol.proof.closing import (
    MASKS,
    PROJECTED_COMMITMENT,
    RESIDUAL_PROJECTIONS,
    WORD_DIGITS,
    Statement,
)
from opfl_chain.protocol.proof.evaluation import Evaluation, as_integers
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.proof.package import ProofForm, ProofPackage, Sharing
from opfl_chain.protocol.proof.statement import Equation, GradientTerm, Ring, Values, Words
from opfl_chain.protocol.proof.transcript import Transcript
from opfl_chain.protocol.proof.wires import Product, Quadratic, Wire, leaf

VECTOR = load("proof")
GIVEN = VECTOR["statement"]
CASES = VECTOR["cases"]
COUNT = GIVEN["projections"]


@dataclass(frozen=True)
class GivenRules:
    value_bits: int = 2
    error_bits: int = 0
    unit_bits: int = GIVEN["unit_bits"]
    word_bits: int = GIVEN["word_bits"]
    range_bits: int = 1
    projections: int = COUNT


def no_fill(value: Values) -> Elements:
    raise AssertionError("the vector has these words")


def the_statement() -> Statement:
    """Return the statement of the vector, made of wires."""
    rules = GivenRules()
    groups: list[Words] = []

    def words(name: str, shape: tuple[int, ...], stage: int, kind: str = "small") -> Wire:
        wire = leaf("words", name, shape, 2 if name == "a" else 0, 1 << 40)
        groups.append(Words(name, wire, no_fill, kind, stage))
        return wire

    one, many = (1, 1), (COUNT,)
    a, b, c, of_input = (words(name, one, 0) for name in ("a", "b", "c", "carry of input"))
    carries, parts, steps = (words(name, many, 1) for name in ("carries", "parts", "steps"))
    words(RESIDUAL_PROJECTIONS, many, 2)
    digits = words(WORD_DIGITS, (COUNT, rules.word_bits + 1), 3, "bits")
    words(MASKS, (2,), 3, "free")
    given = leaf("ring", "input", one, 0, 3 << 64)
    committed = leaf("ring", PROJECTED_COMMITMENT, many, 0, 3 << 64)
    half = a.times(2).divided(-2) - given + of_input.times(1 << 64)
    lift = committed - carries.times(1 << 64) - parts

    def equation(name: str, linear: Wire, quantum: int, *products: Product) -> Equation:
        return Equation(name, Quadratic(linear, products, linear.shape, 0), quantum)

    step = Equation("step", steps.times(4).quadratic, 4, -1)
    return Statement(
        rules,
        tuple(groups),
        (
            equation("product", c, 0, Product(a, b, -1)),
            equation("half", half, 2),
            equation("lift", lift, 0),
            step,
            equation(WORD_DIGITS, digits.times(-1), 0, Product(digits, digits)),
        ),
        (Ring("input", given, 0), Ring(PROJECTED_COMMITMENT, committed, 0)),
        (),
        (GradientTerm("weight", a, b), GradientTerm("bias", None, b)),
        leaf("projected", "gradient", many, 2, 1 << 40),
        0,
        GIVEN["hash"],
    )


STATEMENT = the_statement()
FORM = ProofForm.of(STATEMENT)


def form_of(text: str) -> dict[int, int]:
    pairs = (pair.split(":") for pair in text.split())
    return {int(i): int(multiple) for i, multiple in pairs}


def quadratic_of(text: str) -> tuple[Any, Any]:
    form, *products = text.split("|")
    pairs = (product.split("*") for product in products)
    return form_of(form), [(int(factor), form_of(other)) for factor, other in pairs]


def words_of(data: bytes) -> Any:
    return np.frombuffer(data, "<u8").astype(np.uint64)


def test_statement_is_the_one_of_the_vector() -> None:
    expected = {
        **GIVEN,
        "factors": [form_of(each) for each in GIVEN["factors"]],
        "gradient": [quadratic_of(each) for each in GIVEN["gradient"]],
        "small": [form_of(each) for each in GIVEN["small"]],
        "groups": [
            {**group, "equations": [quadratic_of(each) for each in group["equations"]]}
            for group in GIVEN["groups"]
        ],
    }
    assert written_out(STATEMENT) == expected


def test_elements() -> None:
    encoded = VECTOR["encodedElements"]
    assert Elements.of_python(map(int, VECTOR["elements"])).encode() == encoded
    assert Elements.decode(encoded).encode() == encoded


@pytest.mark.parametrize("case", CASES)
def test_packages(case: dict[str, Any]) -> None:
    for rank, data in enumerate(case["packages"]):
        package = ProofPackage.decode(data, FORM, rank)
        package.verify(FORM)
        assert list(package.leaves.hashes) == case["leaves"]
        assert package.encode() == data
        for wrong in data[:-1], data + b"\x00", b"opfp" + data[4:], b"":
            with pytest.raises(ShareError):
                ProofPackage.decode(wrong, FORM, rank)


def answers_of(case: dict[str, Any]) -> tuple[Query, list[Answer]]:
    packages = [ProofPackage.decode(data, FORM, rank) for rank, data in enumerate(case["packages"])]
    query = Query.of(STATEMENT, VECTOR["context"], packages[0].leaves, case["tossed"])
    parts = {part.index: part for package in packages for part in package.held}
    rings = [[words_of(data) for data in VECTOR[name]] for name in ("gradient", "input")]
    return query, [query.answer(parts[k], rings[0][k], rings[1][k]) for k in range(3)]


@pytest.mark.parametrize("case", CASES)
def test_transcript_answers_and_verdict(case: dict[str, Any]) -> None:
    query, answers = answers_of(case)
    assert [each.state for each in query.transcripts] == case["states"][4:]
    assert [each.encode() for each in answers] == case["answers"]
    assert [Answer.decode(data) for data in case["answers"]] == answers
    assert accepts(answers) is case["accepts"]


def test_combination_and_sharing() -> None:
    case = CASES[0]
    query, _ = answers_of(case)
    given = Elements.decode(VECTOR["words"])
    value, start = Evaluation(), 0
    sharing = Sharing(
        tuple(VECTOR["seeds"]), VECTOR["salt"], Transcript.start(VECTOR["context"], GIVEN["hash"])
    )
    for stage, size in enumerate(FORM.sizes[:4]):
        stage_words = given[start : start + size]
        value.set_words(STATEMENT.stage(stage), stage_words)
        assert sharing.share(stage_words).state == case["states"][stage]
        start += size
    sums = {ring.name: Elements.zeros(ring.wire.size) for ring in STATEMENT.rings}
    for k in range(3):
        sums["input"] = sums["input"] + as_integers(words_of(VECTOR["input"][k]))
        found = project_words(words_of(VECTOR["gradient"][k]), query.coins.gradient, COUNT)
        sums[PROJECTED_COMMITMENT] = sums[PROJECTED_COMMITMENT] + as_integers(found)
    for ring in STATEMENT.rings:
        value.set(ring.wire, sums[ring.name])
    combined = query.coefficients.combine(value)
    assert combined.left.encode() == case["left"]
    assert combined.right.encode() == case["right"]
    assert combined.rest.encode() == case["rest"]
