"""The boolean circuit against numpy."""

from collections import defaultdict
from queue import Queue

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from three_members import QueueTransport, compute, held, ring_components, run_members

from opfl_chain.circuits.arithmetic import (
    add_planes,
    any_bit,
    at_most,
    at_most_public,
    carries,
    carry_out,
    count_lanes,
    increment_planes,
    reaches,
    to_boolean,
    to_planes,
)
from opfl_chain.circuits.bit_planes import full_lanes, planes_of, words_of
from opfl_chain.circuits.boolean import BooleanCircuit, Shared
from opfl_chain.circuits.keccak import keccak_blocks
from opfl_chain.mpc.session.errors import MessageInvalid
from opfl_chain.protocol.hashing import keccak256

words = st.integers(0, 2**64 - 1)
few = settings(max_examples=25, deadline=None)


def array(values):
    return np.array(values, np.uint64)


@few
@given(st.lists(st.tuples(words, words), min_size=1, max_size=20), st.integers(0, 2**32))
def test_conjunction_of_shared_words(pairs, seed):
    left, right = array([a for a, _ in pairs]), array([b for _, b in pairs])
    rng = np.random.default_rng(seed)
    masks = [rng.integers(0, 2**64, left.shape, dtype=np.uint64) for _ in range(4)]
    a = [masks[0], masks[1], left ^ masks[0] ^ masks[1]]
    b = [masks[2], masks[3], right ^ masks[2] ^ masks[3]]

    def conjunction(circuit):
        shared = Shared(*held(a, circuit.rank)), Shared(*held(b, circuit.rank))
        return circuit.open(circuit.conjunction(*shared))

    assert np.array_equal(compute(conjunction), left & right)


@few
@given(st.lists(words, min_size=1, max_size=70), st.integers(0, 2**32))
def test_ring_shares_become_bits(values, seed):
    components = ring_components(array(values), np.random.default_rng(seed))
    bits = compute(lambda c: c.open(to_boolean(c, *held(components, c.rank))))
    assert bits.tolist() == values


@few
@given(st.lists(words, min_size=1, max_size=70), st.lists(words, min_size=1, max_size=3))
def test_ring_shares_become_planes(many, few_):
    rng = np.random.default_rng(0)
    shares = [ring_components(array(values), rng) for values in (many, few_)]

    def member(circuit):
        planes = to_planes(circuit, *(held(components, circuit.rank) for components in shares))
        return np.concatenate(
            [
                words_of(circuit.open(each), len(values))
                for each, values in zip(planes, (many, few_), strict=True)
            ]
        )

    assert compute(member).tolist() == many + few_


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 17, 64])
def test_carries_are_those_of_an_addition(count):
    a, b = np.random.default_rng(count).integers(0, 2**count, (2, 40), dtype=np.uint64)

    def member(circuit):
        x, y = circuit.public(planes_of(a, count)), circuit.public(planes_of(b, count))
        pair = circuit.conjunction(x, y), x ^ y
        found = carries(circuit, *pair)
        assert np.array_equal(
            circuit.open(found[-1:]), circuit.open(carry_out(circuit, *pair)[None])
        )
        return words_of(circuit.open(found), a.size)

    expected = [
        sum((x % 2 ** (j + 1) + y % 2 ** (j + 1)) >> (j + 1) << j for j in range(count))
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert compute(member).tolist() == expected


@few
@given(st.lists(st.integers(0, 2**17 - 1), min_size=1, max_size=64), st.integers(0, 2**17 - 1))
def test_numbers_that_reach_a_bound(values, bound):
    bounds = [bound, *values[1:]]

    def member(circuit):
        numbers = circuit.public(planes_of(array(values), 17))
        return circuit.open(reaches(circuit, numbers, planes_of(array(bounds), 17))[None])

    found = words_of(compute(member), len(values)).tolist()
    assert found == [value >= least for value, least in zip(values, bounds, strict=True)]


@few
@given(st.lists(words, min_size=1, max_size=200), st.integers(1, 64))
def test_planes_and_words_are_inverse(values, bits):
    low = [value % 2**bits for value in values]
    assert words_of(planes_of(array(values), bits), len(values)).tolist() == low


@few
@given(st.lists(st.tuples(st.integers(0, 2**20 - 1), st.integers(0, 2**20 - 1)), min_size=1))
def test_sums_and_comparisons_in_planes(pairs):
    a, b = array([a for a, _ in pairs]), array([b for _, b in pairs])
    bounds = [0, int(a[0]), int(a[0]) + 1, 2**20 - 1, 2**40]

    def all_of_it(circuit):
        x, y = circuit.public(planes_of(a, 20)), circuit.public(planes_of(b, 20))
        total = words_of(circuit.open(add_planes(circuit, x, y)), len(pairs))
        grown = words_of(circuit.open(increment_planes(circuit, x, y[0])), len(pairs))
        smaller = circuit.open(at_most(circuit, x, y)[None])
        within = circuit.open(at_most_public(circuit, x, bounds))
        return np.concatenate(
            [total, grown, words_of(smaller, len(pairs)), words_of(within, len(pairs))]
        )

    expected_within = sum(
        (a <= bound).astype(np.uint64) << np.uint64(i) for i, bound in enumerate(bounds)
    )
    expected = np.concatenate(
        [
            a + b,
            (a + (b & np.uint64(1))) % np.uint64(2**20),
            (a <= b).astype(np.uint64),
            expected_within,
        ]
    )
    assert np.array_equal(compute(all_of_it), expected)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 17, 500])
def test_lanes_are_counted(count):
    values = np.random.default_rng(count).integers(0, 2**64, count, dtype=np.uint64)
    planes = compute(lambda c: c.open(count_lanes(c, c.public(values))))
    counts = words_of(planes.reshape(planes.shape[0], 1), 64)
    expected = [
        int(np.count_nonzero(values >> np.uint64(lane) & np.uint64(1))) for lane in range(64)
    ]
    assert counts.tolist() == expected


@pytest.mark.parametrize("values", [[0], [0, 0, 0], [0, 1 << 63, 0], [5], [0] * 64 + [2]])
def test_any_bit_is_found(values):
    found = compute(lambda c: c.open(any_bit(c, c.public(array(values)))))
    assert found.tolist() == [int(any(values))]


def test_lanes_beyond_the_last_value_are_empty():
    assert full_lanes(64).tolist() == [2**64 - 1]
    assert full_lanes(65).tolist() == [2**64 - 1, 1]


@pytest.mark.parametrize("size", [0, 1, 13, 16])
def test_keccak_is_the_chains(size):
    messages = np.random.default_rng(size).integers(0, 2**64, (size, 9), dtype=np.uint64)
    digests = compute(lambda c: c.open(keccak_blocks(c, c.public(messages))))
    for i in range(messages.shape[1]):
        assert digests[:, i].tobytes() == keccak256(messages[:, i].tobytes())


def test_keccak_refuses_what_does_not_fit_into_a_block():
    with pytest.raises(ValueError, match="17 words, at most 16"):
        compute(lambda c: keccak_blocks(c, c.public(np.zeros((17, 1), np.uint64))).own)


@pytest.mark.parametrize(
    ("messages", "rank", "reason"),
    [
        ([(1, 31)], 1, "a seed of 31 bytes instead of 32"),
        ([(1, 32), (1, 15)], 1, "15 bytes instead of 16"),
        ([(1, 32), (1, 24)], 1, "24 bytes instead of 16"),
        ([(1, 32), (1, 16), (2, 15)], 2, "15 bytes instead of 16"),
        ([(1, 32), (1, 16), (2, 8)], 2, "8 bytes instead of 16"),
    ],
)
def test_a_member_that_sends_a_wrong_size_is_named(messages, rank, reason):
    queues = defaultdict(Queue)
    for sender, size in messages:
        queues[sender, 0].put(bytes(size))
    with pytest.raises(MessageInvalid, match=reason) as caught:
        circuit = BooleanCircuit(QueueTransport(0, queues), bytes(32))
        shared = circuit.public(array([1, 2]))
        circuit.open(circuit.conjunction(shared, shared))
    assert caught.value.rank == rank


@pytest.mark.parametrize(
    "to_bits",
    [lambda c, own: to_boolean(c, *own), lambda c, own: to_planes(c, own)[0]],
    ids=["words", "planes"],
)
def test_received_messages_are_independent_of_the_secret(to_bits):
    """The same circuit on two secrets: no message repeats, and their bits are distributed alike."""
    zero, ones = np.zeros(4096, np.uint64), np.full(4096, 2**64 - 1, np.uint64)

    def transcript(secret):
        components = ring_components(secret, np.random.default_rng(7))
        _, transports = run_members(lambda c: to_bits(c, held(components, c.rank)).own.sum())
        return [b"".join(transport.received[1:]) for transport in transports]

    for first, second in zip(transcript(zero), transcript(ones), strict=True):
        assert len(first) == len(second)
        for data in (first, second):
            density = np.unpackbits(np.frombuffer(data, np.uint8)).mean()
            assert abs(density - 0.5) < 0.005
