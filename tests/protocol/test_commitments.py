"""Commitments bind all their inputs, and refuse values of the wrong width."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from protocol_vectors import addresses, jobs, rounds, words

from opfl_chain.protocol.commitments import Subject, share_hash, shares_commitment
from opfl_chain.protocol.errors import ProtocolError, WidthError
from opfl_chain.protocol.identifiers import job_and_number, round_id_of
from opfl_chain.protocol.inputs import dataset_leaf, dataset_tree, is_input_of_round
from opfl_chain.protocol.randomness import (
    beacon_message,
    proof_of_possession_message,
    seed_of_signature,
)
from opfl_chain.protocol.roll import opening_of, roll_leaf

ADDRESS = "0x" + "11" * 20
openings = st.tuples(st.integers(0, 2**256 - 1), addresses, jobs, rounds, words, words)


@given(openings, openings)
def test_rounds_have_different_openings(a, b):
    assume(a != b)
    assert opening_of(*a) != opening_of(*b)


@given(openings, openings)
def test_rounds_have_different_beacon_messages(a, b):
    assume(a != b)
    assert beacon_message(*a) != beacon_message(*b)


@given(jobs, rounds)
def test_round_id_holds_job_and_number(job, number):
    assert job_and_number(round_id_of(job, number)) == (job, number)


entries = st.tuples(addresses, words)


@given(entries, entries)
def test_leaf_of_the_roll_binds_client_and_content(a, b):
    assume(a != b)
    assert roll_leaf(*a) != roll_leaf(*b)


@given(st.lists(words, min_size=2, max_size=9), st.data())
def test_input_cannot_be_moved_to_another_round(input_commitments, data):
    tree = dataset_tree(input_commitments)
    t = data.draw(st.integers(0, len(input_commitments) - 1))
    proof = tree.proof(t)
    assert is_input_of_round(tree.root, t, input_commitments[t], proof)
    assert not is_input_of_round(tree.root, t + 1, input_commitments[t], proof)


@given(words, words)
def test_components_of_different_index_differ(salt, sent):
    """Also a seed and words of the same bytes."""
    assert len({share_hash(k, salt, sent) for k in range(3)}) == 3


@given(words, words, words)
def test_commitment_depends_on_the_order_of_shares(h0, h1, h2):
    assume(h0 != h1)
    for subject in Subject:
        assert shares_commitment(subject, [h0, h1, h2]) != shares_commitment(subject, [h1, h0, h2])


@given(words, words, words)
def test_input_commitment_is_not_a_gradient_commitment(h0, h1, h2):
    hashes = [h0, h1, h2]
    assert shares_commitment(Subject.INPUT, hashes) != shares_commitment(Subject.GRADIENT, hashes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: share_hash(2, bytes(32), b"x" * 7), "component 2 has 7 bytes"),
        (lambda: share_hash(2, bytes(32), b""), "component 2 has 0 bytes"),
        (lambda: share_hash(3, bytes(32), bytes(32)), "component 3 does not exist"),
        (lambda: shares_commitment(Subject.INPUT, [bytes(32)] * 2), "3 share hashes, got 2"),
    ],
)
def test_malformed_components_are_refused(make, message):
    with pytest.raises(ProtocolError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dataset_leaf(-1, bytes(32)), "t is -1"),
        (lambda: dataset_leaf(2**256, bytes(32)), r"in \[0, 2\^256\)"),
        (lambda: dataset_leaf(0, bytes(33)), "commitment has 33 bytes"),
        (lambda: share_hash(0, b"", bytes(32)), "salt has 0 bytes"),
        (lambda: share_hash(0, bytes(32), bytes(8)), "seed of component 0 has 8 bytes"),
        (lambda: share_hash(1, bytes(32), b""), "seed of component 1 has 0 bytes"),
        (lambda: shares_commitment(Subject.INPUT, [b""] * 3), "share hash 0 has 0 bytes"),
        (lambda: opening_of(1, ADDRESS, 2**64, 0, bytes(32), bytes(32)), "job is 1844674407"),
        (lambda: opening_of(1, ADDRESS, 1, 2**32, bytes(32), bytes(32)), "round is 4294967296"),
        (lambda: opening_of(1, ADDRESS, True, 0, bytes(32), bytes(32)), "job is True"),
        (lambda: opening_of(1, ADDRESS, 1, 0, bytes(31), bytes(32)), "model hash has 31 bytes"),
        (lambda: beacon_message(1, ADDRESS, 1, 0, bytes(28), bytes(32)), "opening has 28 bytes"),
        (lambda: roll_leaf(ADDRESS[:-1], bytes(32)), "client is '0x1111"),
        (lambda: roll_leaf(ADDRESS[2:], bytes(32)), "client is '1111"),
        (lambda: roll_leaf("0x" + "aB" * 20, bytes(32)), "checksum is wrong"),
        (lambda: roll_leaf(ADDRESS, bytes(33)), "content hash has 33 bytes"),
        (lambda: proof_of_possession_message(1, ADDRESS, ADDRESS, bytes(96)), "public key has 96"),
        (lambda: seed_of_signature(bytes(48)), "signature has 48 bytes, it must have 128"),
    ],
)
def test_value_of_wrong_width_is_refused(make, message):
    with pytest.raises(WidthError, match=message):
        make()


def test_case_of_an_address_does_not_matter():
    checksummed = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
    lower = roll_leaf(checksummed.lower(), bytes(32))
    assert roll_leaf(checksummed, bytes(32)) == lower
