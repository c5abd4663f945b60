"""Sums of contributions, added up by members and opened from their components."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from protocol_vectors import words as words32

from opfl_chain.protocol.aggregate import NOTHING, aggregate_hash, open_sum, sum_components
from opfl_chain.protocol.errors import EncodingError, ShareError
from opfl_chain.protocol.hashing import TAG_AGGREGATE, keccak256
from opfl_chain.protocol.shares import SharedVector, held_indices

gradients = st.tuples(st.integers(2, 6), st.integers(1, 40)).flatmap(
    lambda shape: hnp.arrays(np.int64, shape, elements=st.integers(-(2**63), 2**63 - 1))
)


def components(*sizes):
    return {index: np.arange(size, dtype=np.uint64) for index, size in enumerate(sizes)}


@given(gradients, words32)
def test_members_open_the_sum(contributions, seed):
    shared = [
        SharedVector.split(row, keccak256(seed, bytes([0, i])), keccak256(seed, bytes([1, i])))
        for i, row in enumerate(contributions)
    ]
    sums = {}
    for rank in range(3):
        found = sum_components((each.held_by(rank) for each in shared), len(shared))
        for index, component in zip(held_indices(rank), found, strict=True):
            if index in sums:
                assert np.array_equal(sums[index], component)
            sums[index] = component
    expected = [sum(column) for column in contributions.T.tolist()]
    assert open_sum(sums).tolist() == [(x + 2**63) % 2**64 - 2**63 for x in expected]


def test_sum_leaves_what_is_added_as_it_was():
    held = [(np.arange(3, dtype=np.uint64), np.arange(3, dtype=np.uint64)) for _ in range(3)]
    sum_components(held, 3)
    assert all(np.array_equal(part, np.arange(3)) for pair in held for part in pair)


@pytest.mark.parametrize(("count", "fewest"), [(0, 0), (0, 3), (1, 3), (2, 3), (4, 5)])
def test_fewer_contributions_than_the_terms_say_are_not_added_up(count, fewest):
    held = (np.arange(3, dtype=np.uint64), np.arange(3, dtype=np.uint64))
    with pytest.raises(ShareError, match=f"a sum of {count} contributions is not opened"):
        sum_components([held] * count, fewest)


@pytest.mark.parametrize("sizes", [(1, 5, 5, 5), (5, 5, 5, 4), (5, 1, 5, 1)])
def test_contributions_of_several_sizes_are_refused(sizes):
    a, b, c, d = (np.zeros(size, dtype=np.uint64) for size in sizes)
    with pytest.raises(ShareError, match=r"accepted contributions have [14], 5 words"):
        sum_components([(a, b), (c, d)], 2)


@pytest.mark.parametrize(
    ("given_components", "listed"),
    [
        ({}, r"\[\]"),
        (components(2, 2), r"\[0, 1\]"),
        (components(2, 2, 2, 2), r"\[0, 1, 2, 3\]"),
        ({1: np.zeros(2, np.uint64)}, r"\[1\]"),
    ],
)
def test_sum_is_opened_from_three_components(given_components, listed):
    with pytest.raises(ShareError, match=f"got components {listed} of a sum"):
        open_sum(given_components)


def test_components_of_several_sizes_are_refused():
    with pytest.raises(ShareError, match="components of a sum have 1, 1,000 words"):
        open_sum(components(1_000, 1_000, 1))


def test_components_that_are_no_words_are_refused():
    with pytest.raises(EncodingError, match="component 2 of a sum has dtype float64"):
        open_sum(components(2, 2) | {2: np.zeros(2)})
    with pytest.raises(EncodingError, match="component 0 of a sum has shape"):
        open_sum(components(0, 0, 0))


def test_hash_is_of_tag_count_and_words():
    words = np.array([1, -1])
    data = bytes([0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0]) + b"\xff" * 8
    assert aggregate_hash(words) == keccak256(TAG_AGGREGATE, data)
    assert aggregate_hash(words.astype(">i8")) == aggregate_hash(words)
    assert aggregate_hash(NOTHING) == keccak256(TAG_AGGREGATE, bytes(8))
    with pytest.raises(EncodingError, match="aggregate has dtype float64"):
        aggregate_hash(np.array([1.0]))
