import numpy as np
import pytest
from field_values import EDGES, elements_of, values
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from opfl_chain.numerics import kernels
from opfl_chain.numerics.field import MODULUS, Elements, FieldError
from opfl_chain.numerics.projections import coin_bytes, mix, project, project_words

counts = st.sampled_from([8, 16, 24, 128])
sizes = st.integers(0, 40)


def coin_matrix(coins: bytes, count: int, elements: int) -> NDArray[np.int8]:
    """Return the tosses as a matrix of shape (count, elements)."""
    groups = np.frombuffer(coins, np.uint8).reshape(-1, 2, count, 1)
    bits = np.unpackbits(groups, axis=3, bitorder="little").astype(np.int8)
    tosses = bits[:, 0] - bits[:, 1]
    return tosses.transpose(1, 0, 2).reshape(count, -1)[:, :elements]


def random_coins(elements: int, count: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).bytes(coin_bytes(elements, count))


def products(matrix: np.ndarray, vector: list[int]) -> list[int]:
    """The obvious form: a product of matrix and vector, of Python's integers."""
    return [sum(int(c) * v for c, v in zip(row, vector, strict=True)) for row in matrix]


def test_sizes_of_the_coins():
    assert coin_bytes(8, 8) == 16
    assert coin_bytes(9, 8) == 32
    assert coin_bytes(60_000, 128) == 60_000 * 128 // 4
    assert coin_bytes(0, 8) == 0


def test_known_coins():
    plus, minus = bytes([0b1, 0b10, 0xFF, 0, 0, 0, 0, 0]), bytes([0b100, 0b10, 0, 0xFF, 0, 0, 0, 1])
    expected = np.zeros((8, 8), int)
    expected[0, 0], expected[0, 2] = 1, -1
    expected[2], expected[3] = 1, -1
    expected[7, 0] = -1
    assert np.array_equal(coin_matrix(plus + minus, 8, 8), expected)
    assert np.array_equal(coin_matrix(plus + minus, 8, 3), expected[:, :3])
    vector = Elements.of_python(range(1, 9))
    assert project(vector, plus + minus, 8).to_signed() == [-2, 0, 36, -36, 0, 0, 0, -1]


def test_later_groups_follow():
    first, second = random_coins(8, 16, 1), random_coins(8, 16, 2)
    joined = np.hstack([coin_matrix(first, 16, 8), coin_matrix(second, 16, 8)])
    assert np.array_equal(coin_matrix(first + second, 16, 16), joined)


def test_tosses_are_zero_half_of_the_time():
    matrix = coin_matrix(random_coins(8_000, 128), 128, 8_000)
    shares = [np.mean(matrix == toss) for toss in (-1, 0, 1)]
    assert np.allclose(shares, [0.25, 0.5, 0.25], atol=0.002)


@given(counts, sizes, st.integers(0, 9), st.data())
def test_projections_are_products_with_the_matrix(count, size, seed, data):
    coins = random_coins(size, count, seed)
    vector = elements_of(data.draw, size)
    expected = products(coin_matrix(coins, count, size), vector.to_python())
    assert project(vector, coins, count).to_python() == [each % MODULUS for each in expected]


@given(counts, sizes, st.integers(0, 9), st.data())
def test_projections_of_words_are_products_with_the_matrix(count, size, seed, data):
    coins = random_coins(size, count, seed)
    word = st.sampled_from([0, 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)
    words = data.draw(st.lists(word, min_size=size, max_size=size))
    expected = products(coin_matrix(coins, count, size), words)
    projected = project_words(np.array(words, np.uint64), coins, count)
    assert projected.tolist() == [each % 2**64 for each in expected]


@given(counts, sizes, st.integers(0, 9), st.data())
def test_mixtures_are_products_with_the_transposed_matrix(count, size, seed, data):
    coins = random_coins(size, count, seed)
    coefficients = elements_of(data.draw, count)
    expected = products(coin_matrix(coins, count, size).T, coefficients.to_python())
    mixed = mix(coefficients, coins, size)
    assert mixed.shape == (size,)
    assert mixed.to_python() == [each % MODULUS for each in expected]


@given(st.data())
def test_mixing_is_dual_to_projecting(data):
    vector, coefficients = elements_of(data.draw, 21), elements_of(data.draw, 8)
    coins = random_coins(21, 8, 5)
    left = project(vector, coins, 8).dot(coefficients)
    assert left.equals(mix(coefficients, coins, 21).dot(vector))


@pytest.mark.parametrize("value", EDGES)
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_sums_do_not_overflow(value, sign):
    size, count = 2048, 8
    group = [b"\xff" * count, bytes(count)][::sign]
    coins = b"".join(group) * (size // 8)
    vector = Elements.scalar(value).broadcast_to((size,))
    expected = [sign * size * value % MODULUS] * count
    assert project(vector, coins, count).to_python() == expected
    many = coin_bytes(8, size)
    mixed = mix(vector, (b"\xff" * (many // 2) + bytes(many // 2))[::sign], 8)
    assert mixed.to_python() == [sign * size * value % MODULUS] * 8


def test_sums_are_folded_before_lanes_overflow():
    size = 8 * 70_000
    assert size > 8 * kernels._GROUPS_AT_ONCE
    coins = (b"\xff" * 8 + bytes(8)) * (size // 8)
    vector = Elements.scalar(-1).broadcast_to((size,))
    assert project(vector, coins, 8).to_signed() == [-size] * 8


@given(values)
def test_the_sum_of_both_coins_is_nothing(value):
    coins = bytes([0xFF]) * coin_bytes(5, 8)
    assert project(Elements.scalar(value).broadcast_to((5,)), coins, 8).is_zero()


def test_coins_may_be_any_bytes():
    coins, vector = random_coins(11, 8), Elements.of_python(range(11))
    expected = project(vector, coins, 8)
    assert project(vector, bytearray(coins), 8).equals(expected)
    assert project(vector, memoryview(b"x" + coins)[1:], 8).equals(expected)


@pytest.mark.parametrize("count", [0, -8, 7, 12, (1 << 16) + 8])
def test_other_numbers_of_projections_are_refused(count):
    with pytest.raises(FieldError, match=f"{count} projections.*multiple of 8 up to 65,536"):
        coin_bytes(8, count)
    with pytest.raises(FieldError, match="multiple of 8"):
        project(Elements.zeros(8), b"", count)


def test_a_negative_number_of_elements_is_refused():
    with pytest.raises(FieldError, match="-1 elements"):
        coin_bytes(-1, 8)


@pytest.mark.parametrize("size", [0, 31, 33, 48])
def test_coins_of_another_size_are_refused(size):
    refusal = f"got {size} bytes of coins, 8 projections of 9 elements take 32"
    for call in (
        lambda: project(Elements.zeros(9), bytes(size), 8),
        lambda: project_words(np.zeros(9, np.uint64), bytes(size), 8),
        lambda: mix(Elements.zeros(8), bytes(size), 9),
    ):
        with pytest.raises(FieldError, match=refusal):
            call()


def test_values_that_are_not_flat_are_refused():
    with pytest.raises(FieldError, match=r"values have shape \(2, 4\)"):
        project(Elements.zeros((2, 4)), bytes(16), 8)
    with pytest.raises(FieldError, match=r"coefficients have shape \(\)"):
        mix(Elements.scalar(1), bytes(16), 8)
    for words in (np.zeros((2, 4), np.uint64), np.zeros(8, np.int64)):
        with pytest.raises(FieldError, match="must be flat uint64"):
            project_words(words, bytes(16), 8)
