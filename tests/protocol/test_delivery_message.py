"""The wire format of a delivery: encoding round-trips, and malformed bytes are refused."""

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol_vectors import words

from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.delivery import (
    MOST_PROOF_NODES,
    Delivery,
    Expected,
    InputDelivery,
    decode_delivery,
    encode_delivery,
    largest_delivery,
)
from opfl_chain.protocol.errors import ShareError, WidthError
from opfl_chain.protocol.shares import Component, SharePackage, held_indices

HEADER = 29
counts = st.integers(1, 20)


def sent_size(index, count):
    return 8 * count if index == 2 else 32


@st.composite
def packages(draw, expected, count):
    held = []
    for index in held_indices(expected.rank):
        size = sent_size(index, count)
        held.append(Component(index, draw(words), draw(st.binary(min_size=size, max_size=size))))
    hashes = draw(st.tuples(words, words, words))
    return SharePackage(expected.scheme, expected.rank, count, hashes, tuple(held))


@st.composite
def deliveries(draw):
    """Valid deliveries."""
    expected = Expected(
        draw(st.sampled_from(Scheme)), draw(st.integers(0, 2)), *(draw(counts) for _ in range(3))
    )
    gradient = draw(packages(expected, expected.package_words(expected.gradient_words)))
    training_input = advice = None
    if draw(st.booleans()):
        package = draw(packages(expected, expected.package_words(expected.input_words)))
        proof = tuple(draw(st.lists(words, max_size=MOST_PROOF_NODES)))
        training_input = InputDelivery(package, draw(words), proof)
    if draw(st.booleans()):
        advice = draw(packages(expected, expected.advice_words))
    return expected, Delivery(gradient, training_input, advice)


@given(deliveries())
def test_encoding_round_trips(case):
    expected, delivery = case
    data = encode_delivery(delivery)
    assert decode_delivery(data, expected) == delivery
    assert len(data) <= largest_delivery(expected)


@given(deliveries(), st.data())
def test_part_of_a_delivery_is_refused(case, choice):
    expected, delivery = case
    data = encode_delivery(delivery)
    end = choice.draw(st.integers(0, len(data) - 1))
    with pytest.raises(ShareError):
        decode_delivery(data[:end], expected)


def package(expected, count):
    first, second = (
        Component(index, bytes([index] * 32), bytes(sent_size(index, count)))
        for index in held_indices(expected.rank)
    )
    hashes = (b"\1" * 32, b"\2" * 32, b"\3" * 32)
    return SharePackage(expected.scheme, expected.rank, count, hashes, (first, second))


EXPECTED = Expected(Scheme.SHARES, 1, 5, 3, 4)
INPUT = InputDelivery(package(EXPECTED, 3), b"\4" * 32, (b"\5" * 32, b"\6" * 32))
DELIVERY = Delivery(package(EXPECTED, 5), INPUT, package(EXPECTED, 4))
DATA = encode_delivery(DELIVERY)
PARTS = struct.unpack(">QQQ", DATA[5:HEADER])


def refused(data, match, expected=EXPECTED):
    with pytest.raises(ShareError, match=match):
        decode_delivery(data, expected)


def with_input(data):
    gradient = DELIVERY.gradient.encode()
    header = struct.pack(">4sBQQQ", b"OPFD", 1, len(gradient), len(data), 0)
    return header + gradient + data


INPUT_BYTES = DATA[HEADER + PARTS[0] : HEADER + PARTS[0] + PARTS[1]]


def test_layout():
    assert DATA[:5] == b"OPFD\1"
    assert DATA[HEADER:].startswith(DELIVERY.gradient.encode())
    assert b"\2" + b"\4" * 32 + b"\5" * 32 + b"\6" * 32 + INPUT.package.encode() == INPUT_BYTES
    assert DATA.endswith(DELIVERY.advice.encode())
    assert len(DATA) == HEADER + sum(PARTS)


@pytest.mark.parametrize("size", [0, 1, HEADER - 1])
def test_short_header(size):
    refused(DATA[:size], f"has at least 29 bytes, this one has {size}$")


def test_other_magic_or_version():
    refused(b"OPFS" + DATA[4:], r"starts with b'OPFD' and version 1, not b'OPFS' and 1")
    refused(DATA[:4] + b"\2" + DATA[5:], r"not b'OPFD' and 2")


def test_sizes_that_are_not_those_of_what_arrived():
    refused(DATA[:-1], f"has {len(DATA) - 1:,} bytes, its header says {len(DATA):,}")
    refused(DATA + b"\0", f"has {len(DATA) + 1:,} bytes, its header says {len(DATA):,}")
    huge = DATA[:5] + b"\xff" * 24 + DATA[HEADER:]
    refused(huge, f"its header says {HEADER + 3 * (2**64 - 1):,}")
    wrapped = struct.pack(">QQQ", PARTS[0] + 2**63, PARTS[1] + 2**63, PARTS[2])
    refused(DATA[:5] + wrapped + DATA[HEADER:], "its header says")


def test_sizes_that_cut_elsewhere():
    for change in [(-1, 1, 0), (1, -1, 0), (0, -1, 1), (0, 1, -1), (-PARTS[0], 0, PARTS[0])]:
        sizes = (part + by for part, by in zip(PARTS, change, strict=True))
        refused(DATA[:5] + struct.pack(">QQQ", *sizes) + DATA[HEADER:], "package")


def test_no_gradient():
    refused(
        struct.pack(">4sBQQQ", b"OPFD", 1, 0, 0, 0), "package of 0 bytes is truncated in the header"
    )


def test_input_cut_short():
    refused(with_input(b"\2"), "is truncated within its proof: .* 2 nodes take 97 bytes, it has 1$")
    refused(with_input(INPUT_BYTES[:96]), "take 97 bytes, it has 96$")
    refused(with_input(INPUT_BYTES[:97]), "package of 0 bytes is truncated in the header")
    refused(with_input(INPUT_BYTES[:-1]), "is truncated in the words of component 2")


def test_number_of_nodes_that_is_not_so():
    refused(with_input(b"\1" + INPUT_BYTES[1:]), "not a share package")
    refused(with_input(b"\3" + INPUT_BYTES[1:]), "not a share package")
    refused(with_input(b"\xff" + INPUT_BYTES[1:]), "has 255 nodes, at most 32 are allowed")


def test_longest_proof():
    longest = replace(INPUT, proof=(bytes(32),) * MOST_PROOF_NODES)
    delivery = replace(DELIVERY, training_input=longest)
    assert decode_delivery(encode_delivery(delivery), EXPECTED) == delivery
    longer = replace(INPUT, proof=(bytes(32),) * (MOST_PROOF_NODES + 1))
    with pytest.raises(ShareError, match="has 33 nodes, at most 32 are allowed"):
        encode_delivery(replace(DELIVERY, training_input=longer))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"commitment": bytes(31)}, "commitment to the input"),
        ({"proof": (bytes(32), bytes(33))}, r"proof\[1\]"),
    ],
)
def test_hashes_of_another_width_are_not_encoded(change, name):
    wrong = replace(DELIVERY, training_input=replace(INPUT, **change))
    with pytest.raises(WidthError, match=f"^{name} has 3[13] bytes, it must have 32"):
        encode_delivery(wrong)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"rank": 0}, "package is for member 1, expected 0"),
        ({"scheme": Scheme.MPC}, "package has scheme 1, expected mpc"),
        ({"gradient_words": 6}, "package has 5 words, expected 6"),
        ({"input_words": 4}, "package has 3 words, expected 4"),
        ({"advice_words": 5}, "package has 4 words, expected 5"),
        ({"advice_words": 0}, "package has 4 words, expected 0"),
    ],
)
def test_other_packages_than_expected(change, match):
    refused(DATA, match, replace(EXPECTED, **change))


@pytest.mark.parametrize("rank", range(3))
@pytest.mark.parametrize("words_each", [1, 4, 100])
def test_no_delivery_is_larger_than_the_largest(rank, words_each):
    expected = Expected(Scheme.SHARES, rank, words_each, words_each, words_each)
    each = package(expected, words_each)
    given = InputDelivery(each, bytes(32), (bytes(32),) * MOST_PROOF_NODES)
    data = encode_delivery(Delivery(each, given, each))
    assert decode_delivery(data, expected)
    assert len(data) <= largest_delivery(expected)


def test_largest_delivery_grows_with_what_is_expected():
    largest = largest_delivery(EXPECTED)
    assert largest_delivery(replace(EXPECTED, scheme=Scheme.MPC)) == largest + 2 * 4 * 8
    for name in ("gradient_words", "input_words", "advice_words"):
        assert largest_delivery(replace(EXPECTED, **{name: 1_000_000})) < 8_000_000 + largest
