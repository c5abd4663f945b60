"""One component of a contribution: taken, written, read, verified, and used to name a liar."""

import json
from dataclasses import replace

import pytest
from opfl_chain.protocol.exchange import settle
from small_statements import CONTEXT, Case, small_statement

from opfl_chain.numerics.field import MODULUS
from opfl_chain.protocol.audit_exchange import settle
from opfl_chain.protocol.commitments import Scheme, Subject, shares_commitment
from opfl_chain.protocol.delivery import Claim, Delivery, Expected, InputDelivery, check_delivery
from opfl_chain.protocol.errors import HandOverInvalid
from opfl_chain.protocol.hand_over import HandOver
from opfl_chain.protocol.inputs import dataset_tree
from opfl_chain.protocol.proof.answers import Query
from opfl_chain.protocol.proof.package import ProofForm
from opfl_chain.protocol.shares import held_indices, holders_of

ROUND, CLIENT = 2, 3
SALTS = [bytes([1 + k] * 32) for k in range(3)]
COMPONENTS = pytest.mark.parametrize("component", range(3))


@pytest.fixture(scope="module")
def case():
    return Case.of(small_statement(["square", "mask"], 3, 2), [1 << 20, 5, -(1 << 22)])


@pytest.fixture(scope="module")
def delivered(case):
    """The claim, and the deliveries to all members."""
    proofs = case.prove().packages
    gradient = case.gradient.packages(Scheme.SHARES, SALTS)
    given = case.training_input.packages(Scheme.SHARES, SALTS)
    commitment = shares_commitment(Subject.INPUT, given[0].leaf_hashes)
    tree = dataset_tree([b"\x01" * 32, b"\x02" * 32, commitment, b"\x04" * 32])
    path = tuple(tree.proof(ROUND))
    claim = Claim(
        CLIENT,
        ROUND,
        shares_commitment(Subject.GRADIENT, gradient[0].leaf_hashes),
        tree.root,
        True,
    )
    deliveries = [
        Delivery(gradient[rank], InputDelivery(given[rank], commitment, path), None, proofs[rank])
        for rank in range(3)
    ]
    return claim, deliveries


@pytest.fixture(scope="module")
def expected(case):
    form = ProofForm.of(case.statement)
    return Expected(Scheme.SHARES, 0, case.gradient.count, case.training_input.count, proof=form)


def taken(delivered, component):
    claim, deliveries = delivered
    return HandOver.of(claim, deliveries[holders_of(component)[0]], component)


@COMPONENTS
def test_component_survives_its_file_and_is_bound(delivered, expected, component):
    handed = HandOver.decode(taken(delivered, component).encode())
    assert handed == taken(delivered, component)
    handed.verify(delivered[0], expected, expected.proof)


@COMPONENTS
def test_both_holders_hand_the_same_over(delivered, component):
    claim, deliveries = delivered
    one, other = (HandOver.of(claim, deliveries[rank], component) for rank in holders_of(component))
    assert one == other


@COMPONENTS
def test_digest_is_what_members_report(delivered, expected, component):
    claim, deliveries = delivered
    for rank in range(3):
        found = check_delivery(replace(expected, rank=rank), claim, deliveries[rank])
        assert found.leaves == taken(delivered, component).digest


@COMPONENTS
def test_liar_is_named_with_the_component_alone(case, delivered, component):
    handed = HandOver.decode(taken(delivered, component).encode())
    query = Query.of(case.statement, CONTEXT, handed.proof_leaves)
    gradient = handed.gradient.words(case.gradient.count)
    words = handed.training_input.words(case.training_input.count)
    right = query.answer(handed.proof, gradient, words)
    honest, liar = holders_of(component)
    wrong = replace(right, product=(right.product + 1) % MODULUS)
    for answers, named in (
        ({honest: right, liar: right}, ()),
        ({honest: right, liar: wrong}, (liar,)),
        ({honest: wrong, liar: right}, (honest,)),
        ({honest: wrong, liar: wrong}, (honest, liar)),
    ):
        assert settle(query, handed.proof, gradient, words, answers) == named


def test_every_component_has_two_holders():
    for component in range(3):
        ranks = holders_of(component)
        assert ranks == tuple(rank for rank in range(3) if component in held_indices(rank))


def test_component_that_a_member_lacks_is_refused(delivered):
    claim, deliveries = delivered
    with pytest.raises(HandOverInvalid, match="component 2 is not in the delivery, which has 0"):
        HandOver.of(claim, deliveries[0], 2)


def test_delivery_without_a_proof_is_refused(delivered):
    claim, deliveries = delivered
    with pytest.raises(HandOverInvalid, match="has no proof"):
        HandOver.of(claim, replace(deliveries[0], proof=None), 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: [c, c], "a list of 2 hand-overs"),
        (lambda c: {**c, "component": [0, 1]}, "it must be one number from 0 to 2"),
        (lambda c: {**c, "component": True}, "it must be one number"),
        (lambda c: {**c, "format": 2}, "format 2, expected 1"),
        (lambda c: {**c, "second": c["gradient"]}, "an object with the keys client, component"),
        (lambda c: {**c, "round": -1}, "round is -1"),
        (lambda c: {**c, "gradient": [c["gradient"]] * 2}, "the gradient is an object"),
        (
            lambda c: {**c, "gradient": {**c["gradient"], "leaf_hashes": ["0x" + "00" * 32]}},
            "the gradient has 1 leaf hashes",
        ),
        (lambda c: {**c, "gradient": {**c["gradient"], "salt": "0x00"}}, "salt of the gradient"),
        (lambda c: {**c, "gradient": {**c["gradient"], "sent": 7}}, "not a hexadecimal text"),
        (lambda c: {**c, "input": {**c["input"], "path": "0x00"}}, "must be a list"),
        (
            lambda c: {**c, "input": {**c["input"], "path": ["0x" + "00" * 32] * 33}},
            "has 33 nodes, at most 32",
        ),
        (lambda c: {**c, "proof": {**c["proof"], "sent": "0xzz"}}, "not a hexadecimal text"),
    ],
)
def test_malformed_file_is_a_typed_error(delivered, change, message):
    content = json.loads(taken(delivered, 0).encode())
    with pytest.raises(HandOverInvalid, match=message):
        HandOver.decode(json.dumps(change(content)))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "null", '"0x"', "\ud800"])
def test_text_that_is_no_hand_over_is_a_typed_error(text):
    with pytest.raises(HandOverInvalid):
        HandOver.decode(text)


def with_sent(part, sent):
    return replace(part, part=replace(part.part, sent=sent))


UNBOUND = {
    "another round": (lambda h: replace(h, round_number=1), "client 3 in round 1"),
    "another client": (lambda h: replace(h, client=0), "of client 0"),
    "another word of the gradient": (
        lambda h: replace(h, gradient=with_sent(h.gradient, flipped(h.gradient.part.sent))),
        "gradient does not match its leaf hash",
    ),
    "another size of the gradient": (
        lambda h: replace(h, gradient=with_sent(h.gradient, h.gradient.part.sent[:-8])),
        "of the gradient has",
    ),
    "another salt": (
        lambda h: replace(
            h, gradient=replace(h.gradient, part=replace(h.gradient.part, salt=bytes(32)))
        ),
        "gradient does not match its leaf hash",
    ),
    "another word of the input": (
        lambda h: replace(
            h, training_input=with_sent(h.training_input, flipped(h.training_input.part.sent))
        ),
        "input does not match its leaf hash",
    ),
    "another commitment to the input": (
        lambda h: replace(h, input_commitment=bytes(32)),
        "do not make its commitment",
    ),
    "another path": (lambda h: replace(h, input_path=h.input_path[:-1]), "is not the input of"),
    "another word of the proof": (
        lambda h: replace(h, proof=replace(h.proof, sent=flipped(h.proof.sent))),
        "of the proof does not match its leaf",
    ),
    "another size of the proof": (
        lambda h: replace(h, proof=replace(h.proof, sent=h.proof.sent[:-16])),
        "of the proof has",
    ),
    "a leaf less": (
        lambda h: replace(
            h, proof_leaves=replace(h.proof_leaves, hashes=h.proof_leaves.hashes[:-1])
        ),
        "leaf hashes, this job takes",
    ),
}


def flipped(data):
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize("component", [0, 1, 2])
@pytest.mark.parametrize("name", UNBOUND)
def test_part_that_nothing_binds_is_a_typed_error(delivered, expected, component, name):
    change, message = UNBOUND[name]
    handed = change(taken(delivered, component))
    with pytest.raises(HandOverInvalid, match=message):
        handed.verify(delivered[0], expected, expected.proof)


def test_other_commitment_on_chain_is_a_typed_error(delivered, expected):
    claim = replace(delivered[0], commitment=b"\x08" * 32)
    with pytest.raises(HandOverInvalid, match="do not make the commitment on chain"):
        taken(delivered, 1).verify(claim, expected, expected.proof)
