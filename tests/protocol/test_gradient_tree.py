import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from protocol_vectors import ring_arrays
from protocol_vectors import words as salts

from opfl_chain.protocol.commitments import Subject, salted_words, tree_commitment, tree_top
from opfl_chain.protocol.errors import EncodingError, WidthError
from opfl_chain.protocol.hashing import TAG_GRADIENT, keccak256

subjects = st.sampled_from(Subject)
openings = st.tuples(subjects, salts, ring_arrays)


@given(openings, openings)
def test_commitment_binds_subject_salt_and_words(a, b):
    assume((a[0], a[1], a[2].tobytes()) != (b[0], b[1], b[2].tobytes()))
    assert tree_commitment(*a) != tree_commitment(*b)


@given(openings, st.data())
def test_commitment_changes_with_any_bit(opening, data):
    subject, salt, words = opening
    changed = words.copy()
    changed[data.draw(st.integers(0, words.size - 1))] ^= 1 << data.draw(st.integers(0, 62))
    assert tree_commitment(subject, salt, changed) != tree_commitment(subject, salt, words)


@given(openings, st.integers(1, 20))
def test_zero_words_at_the_end_are_bound_by_the_count(opening, zeros):
    subject, salt, words = opening
    longer = np.concatenate([words, np.zeros(zeros, np.int64)])
    assert tree_commitment(subject, salt, longer) != tree_commitment(subject, salt, words)


@given(ring_arrays.filter(lambda words: words.size > 16), salts)
def test_nodes_do_not_pass_for_leaves(words, salt):
    leaves = b"".join(
        keccak256(words[at : at + 16].tobytes().ljust(128, b"\0"))
        for at in range(0, words.size, 16)
    )
    nodes = np.frombuffer(leaves, "<i8")
    assert tree_top(nodes) == tree_top(words)  # the shape differs, and the count is committed to
    assert tree_commitment(Subject.INPUT, salt, nodes) != tree_commitment(
        Subject.INPUT, salt, words
    )


def test_one_leaf_is_its_own_top():
    words = np.arange(16)
    assert tree_top(words) == keccak256(words.astype("<i8").tobytes())


def test_missing_children_are_zero_bytes():
    words = np.arange(17)
    leaves = [keccak256(words[:16].tobytes()), keccak256(words[16:].tobytes() + bytes(120))]
    top = keccak256(*leaves, bytes(64))
    assert tree_top(words) == top
    salt = b"\x01" * 32
    expected = keccak256(TAG_GRADIENT, salt, top, b"\x11" + bytes(7))
    assert tree_commitment(Subject.GRADIENT, salt, words) == expected


@given(ring_arrays, salts)
def test_salt_is_shared_after_the_words(words, salt):
    assert salted_words(words, salt).tobytes() == words.tobytes() + salt


@given(hnp.arrays(np.int64, st.integers(1, 40)))
def test_representation_of_words_does_not_matter(words):
    top = tree_top(words)
    for same in (words.view(np.uint64), words.astype(">i8"), np.repeat(words, 2)[::2]):
        assert tree_top(same) == top


@pytest.mark.parametrize(
    ("words", "salt", "error", "message"),
    [
        (np.arange(0), bytes(32), EncodingError, r"words has shape \(0,\)"),
        (np.arange(4).reshape(2, 2), bytes(32), EncodingError, r"words has shape \(2, 2\)"),
        (np.arange(4, dtype=np.int32), bytes(32), EncodingError, "words has dtype int32"),
        (np.arange(4.0), bytes(32), EncodingError, "words has dtype float64"),
        (np.arange(4), bytes(31), WidthError, "salt has 31 bytes"),
    ],
)
def test_malformed_words_are_refused(words, salt, error, message):
    for make in (
        lambda: tree_commitment(Subject.INPUT, salt, words),
        lambda: salted_words(words, salt),
    ):
        with pytest.raises(error, match=message):
            make()
