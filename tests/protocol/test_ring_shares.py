from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from protocol_vectors import ring_arrays
from protocol_vectors import words as words32

from opfl_chain.protocol.commitments import Scheme, Subject, shares_commitment
from opfl_chain.protocol.errors import (
    CommitmentMismatch,
    ComponentMismatch,
    EncodingError,
    ShareError,
    WidthError,
)
from opfl_chain.protocol.shares import (
    Component,
    SharedVector,
    SharePackage,
    expand,
    held_indices,
    key_stream,
    verify_components,
    verify_package,
)

SEEDS = (b"\x01" * 32, b"\x02" * 32)
SALTS = (b"\x03" * 32, b"\x04" * 32, b"\x05" * 32)
SHARED = SharedVector.split(np.arange(5), *SEEDS)
PACKAGES = SHARED.packages(Scheme.SHARES, SALTS)
COMMITMENT = shares_commitment(Subject.GRADIENT, PACKAGES[0].leaf_hashes)

schemes = st.sampled_from(Scheme)
ranks = st.integers(0, 2)
seed_pairs = st.tuples(words32, words32).filter(lambda pair: pair[0] != pair[1])
salt_triples = st.tuples(words32, words32, words32)


@given(ring_arrays, seed_pairs)
def test_components_add_up(words, seeds):
    shared = SharedVector.split(words, *seeds)
    assert np.array_equal(shared.reconstruct(), words)
    exact = [sum(map(int, parts)) % 2**64 for parts in zip(*shared.components, strict=True)]
    assert exact == [int(word) % 2**64 for word in words]


@given(ring_arrays, seed_pairs)
def test_any_two_members_hold_all_components(words, seeds):
    shared = SharedVector.split(words, *seeds)
    for rank in range(3):
        first, second = shared.held_by(rank)
        third = shared.held_by((rank + 1) % 3)[1]
        assert np.array_equal((first + second + third).view("<i8"), words)
        assert np.array_equal(second, shared.held_by((rank + 1) % 3)[0])


@given(words32, st.integers(1, 50), st.integers(1, 50))
def test_expansion_is_a_prefix_of_any_longer_one(seed, count, more):
    assert np.array_equal(expand(seed, count), expand(seed, count + more)[:count])


@given(words32, st.integers(0, 5), st.integers(1, 64))
def test_key_stream_continues_at_any_block(key, block, size):
    assert key_stream(key, size, block) == key_stream(key, 16 * block + size)[16 * block :]


@given(ring_arrays, seed_pairs, salt_triples, schemes, ranks)
def test_packages_round_trip(words, seeds, salts, scheme, rank):
    package = SharedVector.split(words, *seeds).packages(scheme, salts)[rank]
    assert SharePackage.decode(package.encode(), scheme, rank, words.size) == package


@given(ring_arrays, seed_pairs, salt_triples, st.sampled_from(Subject))
def test_every_member_verifies_what_it_is_sent(words, seeds, salts, subject):
    shared = SharedVector.split(words, *seeds)
    packages = shared.packages(Scheme.SHARES, salts)
    commitment = shares_commitment(subject, packages[0].leaf_hashes)
    for rank, package in enumerate(packages):
        received = SharePackage.decode(package.encode(), Scheme.SHARES, rank, words.size)
        opened = verify_package(received, subject, commitment)
        for held, expected in zip(opened, shared.held_by(rank), strict=True):
            assert np.array_equal(held, expected)


def test_only_the_last_component_travels_as_words():
    words = SHARED.components[2].tobytes()
    sent = [[component.sent for component in package.held] for package in PACKAGES]
    assert sent == [[SEEDS[0], SEEDS[1]], [SEEDS[1], words], [words, SEEDS[0]]]
    assert [len(package.encode()) for package in PACKAGES] == [239, 247, 247]


@given(ranks, st.data())
def test_any_changed_byte_is_noticed(rank, data):
    encoded = bytearray(PACKAGES[rank].encode())
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ShareError):
        received = SharePackage.decode(bytes(encoded), Scheme.SHARES, rank, SHARED.count)
        verify_package(received, Subject.GRADIENT, COMMITMENT)


@given(ranks, st.integers(0, 246))
def test_any_shorter_package_is_refused(rank, size):
    encoded = PACKAGES[rank].encode()
    assume(size < len(encoded))
    with pytest.raises(ShareError, match=r"package of [\d,]+ bytes is truncated in"):
        SharePackage.decode(encoded[:size], Scheme.SHARES, rank, SHARED.count)


mutations = st.one_of(
    st.binary(max_size=300),
    st.binary(max_size=300).map(lambda tail: PACKAGES[1].encode()[:111] + tail),
    st.builds(
        lambda at, piece: PACKAGES[1].encode()[:at] + piece + PACKAGES[1].encode()[at:],
        st.integers(0, 247),
        st.binary(max_size=20),
    ),
)


@given(mutations, schemes, st.integers(-1, 3), st.sampled_from([0, 1, 5, 2**64 - 1, 2**64]))
def test_decoder_refuses_or_reads_back_the_same_bytes(data, scheme, rank, count):
    try:
        package = SharePackage.decode(data, scheme, rank, count)
    except ShareError:
        return
    assert package.encode() == data


@pytest.mark.parametrize("rank", range(3))
def test_count_that_was_not_expected_allocates_nothing(rank):
    encoded = PACKAGES[rank].encode()
    huge = encoded[:7] + (2**64 - 1).to_bytes(8, "big") + encoded[15:]
    with pytest.raises(ShareError, match="has 18,446,744,073,709,551,615 words, expected 5"):
        SharePackage.decode(huge, Scheme.SHARES, rank, 5)


def edited(at: int, piece: bytes, rank: int = 1) -> bytes:
    encoded = PACKAGES[rank].encode()
    return encoded[:at] + piece + encoded[at + len(piece) :]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "package of 0 bytes is truncated in the header: 15 bytes are needed, 0 are left"),
        (edited(0, b"GET /"), "not a share package: it starts with b'GET '"),
        (edited(4, b"\x02"), "package has version 2, expected 1"),
        (edited(5, b"\x00"), "package has unknown scheme 0"),
        (edited(5, b"\x02"), "package has scheme 2, expected shares"),
        (edited(6, b"\x02"), "package is for member 2, expected 1"),
        (edited(14, b"\x06"), "package has 6 words, expected 5"),
        (
            PACKAGES[1].encode()[:60],
            "is truncated in leaf hash 1: 32 bytes are needed, 13 are left",
        ),
        (PACKAGES[1].encode()[:120], "is truncated in the salt of component 1"),
        (
            PACKAGES[1].encode()[:150],
            "is truncated in the seed of component 1: 32 bytes are needed, 7 are",
        ),
        (
            PACKAGES[1].encode()[:-1],
            "is truncated in the words of component 2: 40 bytes are needed, 39",
        ),
        (PACKAGES[1].encode() + b"\0", "package has 1 bytes after its end"),
    ],
)
def test_malformed_package_is_refused(data, message):
    with pytest.raises(ShareError, match=message):
        SharePackage.decode(data, Scheme.SHARES, 1, 5)


@pytest.mark.parametrize(
    ("at", "error", "message"),
    [
        (15, CommitmentMismatch, "leaf hashes do not match the gradient commitment 0x"),
        (47, CommitmentMismatch, "leaf hashes do not match the gradient commitment 0x"),
        (111, ComponentMismatch, "component 1 does not match its leaf: it hashes to 0x"),
        (143, ComponentMismatch, "component 1 does not match its leaf"),
        (180, ComponentMismatch, "component 2 does not match its leaf"),
        (210, ComponentMismatch, "component 2 does not match its leaf"),
    ],
)
def test_mismatch_says_what_does_not_match(at, error, message):
    package = SharePackage.decode(edited(at, b"\xee"), Scheme.SHARES, 1, 5)
    with pytest.raises(error, match=message):
        verify_package(package, Subject.GRADIENT, COMMITMENT)


def test_input_does_not_pass_for_a_gradient():
    with pytest.raises(CommitmentMismatch, match="do not match the input commitment"):
        verify_package(PACKAGES[0], Subject.INPUT, COMMITMENT)


def test_scheme_mpc_checks_components_and_leaves_the_commitment_to_mpc():
    package = SHARED.packages(Scheme.MPC, SALTS)[2]
    for held, expected in zip(verify_components(package), SHARED.held_by(2), strict=True):
        assert np.array_equal(held, expected)
    with pytest.raises(ShareError, match="scheme mpc, whose commitment is checked inside MPC"):
        verify_package(package, Subject.GRADIENT, COMMITMENT)


def test_secrets_are_not_printed():
    text = repr(PACKAGES) + repr(SHARED)
    for secret in (*SEEDS, *SALTS):
        assert repr(secret) not in text


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: SharedVector.split(np.arange(5.0), *SEEDS), EncodingError, "dtype float64"),
        (lambda: SharedVector.split(np.arange(5), b"", SEEDS[1]), WidthError, "seed has 0 bytes"),
        (lambda: SharedVector.split(np.arange(5), SEEDS[0], SEEDS[0]), ShareError, "are equal"),
        (lambda: SHARED.packages(Scheme.SHARES, SALTS[:2]), ShareError, "3 salts, got 2"),
        (lambda: SHARED.packages(Scheme.SHARES, [b""] * 3), WidthError, "salt has 0 bytes"),
        (lambda: SHARED.held_by(3), ShareError, "rank is 3"),
        (lambda: held_indices(-1), ShareError, "rank is -1"),
        (lambda: expand(SEEDS[0], 0), ShareError, "not 0"),
        (lambda: replace(PACKAGES[0], rank=1), ShareError, "holds components 1 and 2, not 0 and 1"),
        (lambda: replace(PACKAGES[0], count=0), ShareError, "count is 0"),
        (lambda: replace(PACKAGES[1], count=4), ShareError, "component 2 has 40 bytes, it must ha"),
        (lambda: replace(PACKAGES[0], leaf_hashes=(b"",) * 3), ShareError, "leaf hash 0 has 0"),
        (lambda: replace(PACKAGES[0], leaf_hashes=()), ShareError, "3 leaf hashes, got 0"),
        (
            lambda: replace(
                PACKAGES[0],
                held=(Component(0, b"", SEEDS[0]), PACKAGES[0].held[1]),
            ),
            ShareError,
            "salt of component 0 has 0 bytes",
        ),
        (lambda: verify_package(PACKAGES[0], Subject.GRADIENT, b""), WidthError, "commitment has"),
    ],
)
def test_malformed_call_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
