from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opfl_chain.protocol.errors import EncodingError
from opfl_chain.protocol.ring import FixedPoint

formats = st.builds(FixedPoint, st.integers(0, 40), st.integers(0, 12).map(lambda n: 1 << n))
float32s = st.floats(width=32, min_value=-256, max_value=256)
words = hnp.arrays(np.int64, st.integers(1, 20), elements=st.integers(-(2**53), 2**53))


@given(formats, st.lists(float32s, min_size=1, max_size=20))
def test_float32_has_the_words_of_its_float64(fixed_point, reals):
    single = fixed_point.encode({"w": np.array(reals, np.float32)})
    double = fixed_point.encode({"w": np.array(reals, np.float64)})
    assert single.dtype == double.dtype == np.dtype("<i8")
    assert single.tobytes() == double.tobytes()


@given(formats, st.floats(min_value=-256, max_value=256))
def test_word_is_the_exact_product_rounded_to_even(fixed_point, real):
    (word,) = fixed_point.encode_array("x", np.array([real]))
    assert word == round(Fraction(real) * fixed_point.words_per_unit)


@given(formats, words)
def test_words_up_to_53_bits_round_trip(fixed_point, words):
    reals = fixed_point.decode(words, {"w": words.shape})["w"]
    assert reals.dtype == np.float64
    assert np.array_equal(fixed_point.encode({"w": reals}), words)


@given(formats, st.lists(hnp.arrays(np.float32, hnp.array_shapes(), elements=float32s)))
def test_arrays_keep_order_and_shape(fixed_point, arrays):
    named = {f"p{i}": array for i, array in enumerate([np.ones((2, 3)), *arrays])}
    words = fixed_point.encode(named)
    decoded = fixed_point.decode(words, {name: array.shape for name, array in named.items()})
    assert list(decoded) == list(named)
    for name, array in named.items():
        assert decoded[name].shape == array.shape
        assert np.abs(decoded[name] - array).max() <= fixed_point.quantum / 2


def test_order_in_memory_does_not_matter():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    fixed_point = FixedPoint(3)
    expected = [8 * i for i in range(6)]
    for same in (array, np.asfortranarray(array), array.astype(">f4"), array[::-1][::-1]):
        assert fixed_point.encode({"w": same}).tolist() == expected


def test_values_round_half_to_even():
    halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5])
    assert FixedPoint(0).encode_array("x", halves).tolist() == [0, 2, 2, 0, -2, -2]


def test_sum_and_difference_of_the_largest_words_do_not_wrap():
    largest = np.nextafter(2.0**62, 0)
    high, low = FixedPoint(0).encode_array("x", np.array([largest, -largest]))
    assert int(high) - int(low) == int(high - low)
    assert int(low) + int(low) == int(low + low)


def test_quantum_is_exact():
    assert FixedPoint(22, 64).quantum == 2.0**-28
    assert FixedPoint(22, 64).words_per_unit == 2**28


def array_with(value: float, dtype: type = np.float32) -> np.ndarray:
    array = np.zeros((4, 2, 1, 3), dtype)
    array[3, 1, 0, 2] = value
    return array


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (array_with(np.nan), r"^conv2\.weight\[3, 1, 0, 2\] is nan$"),
        (array_with(-np.inf), r"^conv2\.weight\[3, 1, 0, 2\] is -inf$"),
        (array_with(3e10), r"^conv2\.weight\[3, 1, 0, 2\] is 3e\+10: with 22 fraction bits and sc"),
        (array_with(1e308, np.float64), "magnitudes must be below 1.71799e"),
        (np.array(np.nan), r"^conv2\.weight is nan$"),
        (np.array([0.0, np.inf, np.nan]), r"^conv2\.weight\[1\] is inf$"),
        (np.array([1, 2]), "conv2.weight has dtype int64"),
        (np.array([1, 2], np.complex64), "conv2.weight has dtype complex64"),
    ],
)
def test_unencodable_number_is_refused_by_name_and_index(array, message):
    fixed_point = FixedPoint(22, 64)
    with pytest.raises(EncodingError, match=message):
        fixed_point.encode({"conv1.weight": np.ones(3), "conv2.weight": array})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FixedPoint(-1), "fraction bits are -1"),
        (lambda: FixedPoint(62), r"62, they must be in \[0, 61\]"),
        (lambda: FixedPoint(22, 0), "scale is 0"),
        (lambda: FixedPoint(22, 48), "scale is 48, it must be a power of two"),
        (lambda: FixedPoint(22, 2**33), "scale is 8589934592"),
        (lambda: FixedPoint(22).encode({}), "nothing to encode"),
        (lambda: FixedPoint(22).encode({"w": np.ones(0)}), r"shape \(0,\)"),
        (lambda: FixedPoint(22).decode(np.arange(3), {"w": (2, 2)}), "3 words for arrays of 4"),
        (lambda: FixedPoint(22).decode_words(np.ones(3)), "words has dtype float64"),
        (lambda: FixedPoint(22).decode_words(np.ones((1, 3), np.int64)), r"shape \(1, 3\)"),
    ],
)
def test_malformed_call_is_refused(make, message):
    with pytest.raises(EncodingError, match=message):
        make()
