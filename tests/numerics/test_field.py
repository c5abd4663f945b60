import math
import pickle

import numpy as np
import pytest
from field_values import EDGES, elements_of, lists, pairs, signed, values
from hypothesis import given
from hypothesis import strategies as st

from opfl_chain.numerics.field import ELEMENT_BYTES, MODULUS, Elements, FieldError

SIX = Elements.of_python([0, 1, 2**64 - 1, 2**64, 2**64 + 1, MODULUS - 1])
LIMIT = 2**32

dimensions = st.integers(0, 5)


def as_objects(elements: Elements) -> np.ndarray:
    """The same array of Python's integers, whose arithmetic is exact."""
    objects = np.empty(elements.size, object)
    objects[:] = elements.to_python()
    return objects.reshape(elements.shape)


def assert_same(elements: Elements, expected: np.ndarray) -> None:
    assert elements.shape == np.shape(expected)
    assert elements.to_python() == [each % MODULUS for each in np.ravel(expected)]


def test_the_modulus_is_a_mersenne_prime():
    assert MODULUS == 170141183460469231731687303715884105727


def test_known_answers():
    three, minus_one = Elements.scalar(3), Elements.scalar(-1)
    assert (minus_one * minus_one).to_python() == [1]
    assert (minus_one + three).to_python() == [2]
    assert (three - Elements.scalar(4)).to_python() == [MODULUS - 1]
    assert (Elements.scalar(2**126) * 2).to_python() == [1]
    inverse_of_three = (2 * MODULUS + 1) // 3
    assert (three * inverse_of_three).to_python() == [1]
    assert Elements.scalar(0x0123456789ABCDEF0123456789ABCDEF).encode().hex() == (
        "efcdab8967452301" * 2
    )


@pytest.mark.parametrize("left", EDGES)
def test_arithmetic_at_the_edges(left):
    others = Elements.of_python(EDGES)
    one = Elements.scalar(left)
    assert (one + others).to_python() == [(left + each) % MODULUS for each in EDGES]
    assert (one - others).to_python() == [(left - each) % MODULUS for each in EDGES]
    assert (one * others).to_python() == [left * each % MODULUS for each in EDGES]
    assert (-one).to_python() == [-left % MODULUS]


@given(pairs)
def test_arithmetic_is_that_of_integers(drawn):
    left, right = (Elements.of_python(each) for each in zip(*drawn, strict=True))
    assert (left + right).to_python() == [(a + b) % MODULUS for a, b in drawn]
    assert (left - right).to_python() == [(a - b) % MODULUS for a, b in drawn]
    assert (left * right).to_python() == [a * b % MODULUS for a, b in drawn]
    assert (-left).to_python() == [-a % MODULUS for a, _ in drawn]
    assert left.dot(right).to_python() == [sum(a * b for a, b in drawn) % MODULUS]
    assert left.sum().to_python() == [sum(a for a, _ in drawn) % MODULUS]


@given(lists, st.integers())
def test_multiples_by_integers_of_any_size(drawn, factor):
    assert (Elements.of_python(drawn) * factor).to_python() == [
        each * factor % MODULUS for each in drawn
    ]


@given(st.lists(st.integers(), max_size=20))
def test_python_integers_are_reduced(drawn):
    assert Elements.of_python(drawn).to_python() == [each % MODULUS for each in drawn]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_signed_integers(drawn):
    elements = Elements.of_integers(np.array(drawn, np.int64))
    assert elements.to_signed() == drawn
    assert elements.to_python() == [each % MODULUS for each in drawn]


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_unsigned_integers(drawn):
    assert Elements.of_integers(np.array(drawn, np.uint64)).to_python() == drawn


def test_integers_keep_their_shape():
    integers = np.arange(-6, 6).reshape(3, 4)
    for each in (integers, integers.T, integers[::2, ::-1], integers[1, 1]):
        assert_same(Elements.of_integers(np.asarray(each)), each)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float64", "bool", ">i8", object])
def test_integers_of_other_types_are_refused(dtype):
    with pytest.raises(FieldError, match="must be int64 or uint64"):
        Elements.of_integers(np.zeros(3, dtype))


@pytest.mark.parametrize(
    ("left", "right", "shape"),
    [
        ((), (), ()),
        ((), (5,), (5,)),
        ((3, 4), (), (3, 4)),
        ((3, 4), (4,), (3, 4)),
        ((3, 4), (3, 1), (3, 4)),
        ((3, 1), (1, 4), (3, 4)),
        ((2, 3, 1), (2, 1, 4), (2, 3, 4)),
        ((2, 1, 4), (3, 4), (2, 3, 4)),
        ((1, 1, 1), (4,), (1, 1, 4)),
        ((2, 1, 3, 1, 2), (1, 4, 1, 5, 1), (2, 4, 3, 5, 2)),
        ((0,), (1,), (0,)),
        ((0, 3), (2, 1, 3), (2, 0, 3)),
    ],
)
def test_operands_broadcast(left, right, shape):
    a = Elements.of_python(7**i for i in range(math.prod(left))).reshape(*left)
    b = Elements.of_python(-(11**i) for i in range(math.prod(right))).reshape(*right)
    for x, y in ((a, b), (b, a)):
        assert (x + y).shape == shape
        assert_same(x + y, as_objects(x) + as_objects(y))
        assert_same(x - y, as_objects(x) - as_objects(y))
        assert_same(x * y, as_objects(x) * as_objects(y))


def test_shapes_that_do_not_broadcast_are_refused():
    for operation in (Elements.__add__, Elements.__sub__, Elements.__mul__):
        with pytest.raises(FieldError, match=r"shapes \(6,\) and \(5,\)"):
            operation(SIX, SIX[:5])


@pytest.mark.parametrize("other", [1.5, "1", None, np.arange(6), np.int64(3)])
def test_operands_of_other_types_are_refused(other):
    for operation in ("__add__", "__sub__", "__mul__"):
        assert getattr(SIX, operation)(other) is NotImplemented
    with pytest.raises(TypeError):
        other * SIX


@given(st.data())
def test_sums_along_an_axis(data):
    shape = tuple(data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=3)))
    elements = elements_of(data.draw, *shape)
    for axis in range(-len(shape), len(shape)):
        expected = np.sum(as_objects(elements), axis=axis, initial=0)
        assert_same(elements.sum(axis), np.asarray(expected, object))


def test_sums_without_such_an_axis_are_refused():
    for axis in (1, -2):
        with pytest.raises(FieldError, match=f"have no axis {axis}"):
            SIX.sum(axis)


def test_a_long_sum_and_inner_product_do_not_overflow():
    size = 100_000
    largest = Elements.scalar(MODULUS - 1).broadcast_to((size,))
    assert largest.sum().to_signed() == [-size]
    assert largest.dot(largest).to_signed() == [size]


def test_inner_products_of_other_shapes_are_refused():
    with pytest.raises(FieldError, match=r"shapes \(6,\) and \(5,\)"):
        SIX.dot(SIX[:5])


@given(dimensions, dimensions, dimensions, st.data())
def test_products_of_matrices(m, k, n, data):
    left, right = elements_of(data.draw, m, k), elements_of(data.draw, k, n)
    product = left.matmul(right)
    assert product.shape == (m, n)
    if k:
        assert_same(product, as_objects(left).dot(as_objects(right)))
    else:
        assert product.is_zero()


@given(dimensions, dimensions, dimensions, st.data())
def test_products_with_integers(m, k, n, data):
    left = elements_of(data.draw, m, k)
    entries = st.sampled_from([0, 1, -1, LIMIT - 1, 1 - LIMIT]) | st.integers(1 - LIMIT, LIMIT - 1)
    drawn = data.draw(st.lists(entries, min_size=k * n, max_size=k * n))
    matrix = np.array(drawn, np.int64).reshape(k, n)
    product = left.times_integers(matrix)
    assert product.shape == (m, n)
    assert product.equals(left.matmul(Elements.of_integers(matrix)))


@pytest.mark.parametrize(("m", "k", "n"), [(3, 5, 300), (2, 4000, 9), (1, 20_000, 1), (70, 3, 70)])
def test_products_of_several_tiles(m, k, n):
    stream = np.random.default_rng(m).bytes
    left = Elements.uniform(stream(ELEMENT_BYTES * m * k)).reshape(m, k)
    matrix = np.random.default_rng(n).integers(1 - LIMIT, LIMIT, (k, n))
    right = Elements.of_integers(matrix)
    expected = as_objects(left).dot(matrix.astype(object))
    assert_same(left.matmul(right), expected)
    assert_same(left.times_integers(matrix), expected)
    assert_same(left.times_integers(np.asfortranarray(matrix)), expected)


@pytest.mark.parametrize("entry", [LIMIT, -LIMIT, 2**63 - 1, -(2**63)])
def test_integers_too_large_are_refused(entry):
    with pytest.raises(FieldError, match=rf"{entry}.*below 2\^32"):
        SIX.reshape(1, 6).times_integers(np.array([[entry]] + [[0]] * 5))


def test_matrices_that_do_not_fit_are_refused():
    square = SIX[:4].reshape(2, 2)
    for left, right in ((SIX, SIX), (SIX.reshape(2, 3), square), (square, SIX[:2])):
        with pytest.raises(FieldError, match=r"expected \(m, k\) and \(k, n\)"):
            left.matmul(right)
    with pytest.raises(FieldError, match=r"shapes \(2, 2\) and \(3, 2\)"):
        square.times_integers(np.zeros((3, 2), np.int64))
    with pytest.raises(FieldError, match="dtype int32, it must be int64"):
        square.times_integers(np.zeros((2, 2), np.int32))


@given(lists)
def test_encoding_and_back(drawn):
    elements = Elements.of_python(drawn)
    data = elements.encode()
    assert data == b"".join(each.to_bytes(ELEMENT_BYTES, "little") for each in drawn)
    assert Elements.decode(data).equals(elements)


@pytest.mark.parametrize("value", [MODULUS, MODULUS + 1, 2**128 - 1, 2**127 + 5])
def test_bytes_that_are_not_canonical_are_refused(value):
    data = SIX.encode() + value.to_bytes(ELEMENT_BYTES, "little") + SIX.encode()
    with pytest.raises(FieldError, match=rf"shares\[6\] is {value:#x}, it must be below"):
        Elements.decode(data, "shares")


@pytest.mark.parametrize("size", [1, 15, 17])
def test_bytes_that_are_not_whole_elements_are_refused(size):
    with pytest.raises(FieldError, match=f"masks has {size} bytes, it must be whole elements"):
        Elements.decode(bytes(size), "masks")
    with pytest.raises(FieldError, match=f"stream has {size} bytes"):
        Elements.uniform(bytes(size))


def test_nothing_is_encoded_as_nothing():
    assert Elements.decode(b"").shape == (0,)
    assert Elements.zeros(0).encode() == b""


@given(st.lists(st.integers(0, 2**128 - 1) | st.sampled_from([MODULUS, 2**128 - 1, 2**127])))
def test_uniform_elements_drop_the_top_bit(drawn):
    stream = b"".join(each.to_bytes(ELEMENT_BYTES, "little") for each in drawn)
    expected = [each % 2**127 % MODULUS for each in drawn]
    assert Elements.uniform(stream).to_python() == expected


@given(values)
def test_signed_values(value):
    one = Elements.scalar(value)
    assert one.to_signed() == [signed(value)]
    assert -(MODULUS // 2) <= signed(value) <= MODULUS // 2


@given(values | st.integers(2**52, 2**56) | st.integers(2**64 - 2**12, 2**65 + 2**13))
def test_floats_are_the_nearest(value):
    for each in (value, -value % MODULUS):
        floats = Elements.scalar(each).to_floats()
        assert floats.shape == ()
        assert float(floats) == float(signed(each))


@pytest.mark.parametrize("shift", [1, 11, 12, 60, 70])
def test_floats_round_halves_to_even(shift):
    halves = [(2**53 + i) * 2**shift + 2 ** (shift - 1) + d for i in range(4) for d in (-1, 0, 1)]
    floats = Elements.of_python(halves).reshape(4, 3).to_floats()
    assert floats.shape == (4, 3)
    assert floats.ravel().tolist() == [float(each) for each in halves]


@given(lists, st.integers(0, 127))
def test_shifts_round_to_the_nearest(drawn, bits):
    shifted = Elements.of_python(drawn).rounded_shift(bits)
    expected = [(2 * signed(each) + 2**bits) >> (bits + 1) for each in drawn]
    assert shifted.to_signed() == expected


def test_shifts_round_halves_up():
    values = Elements.of_python([-6, -5, -3, -2, -1, 0, 1, 2, 3, 5, 6])
    assert values.rounded_shift(2).to_signed() == [-1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 2]
    assert values.reshape(11, 1).rounded_shift(2).shape == (11, 1)


@pytest.mark.parametrize("bits", [-1, 128])
def test_shifts_by_other_bits_are_refused(bits):
    with pytest.raises(FieldError, match=f"shift by {bits} bits, it must be by 0 to 127"):
        SIX.rounded_shift(bits)


@given(
    st.integers(0, MODULUS // 2)
    | st.builds(lambda s, d: max(0, s * s + d), st.integers(0, 2**63 - 1), st.integers(-2, 2))
    | st.builds(lambda s, d: s * s + s + d, st.integers(0, 2**63 - 1), st.integers(0, 1))
)
def test_square_roots_are_the_nearest(value):
    value = min(value, MODULUS // 2)
    (root,) = Elements.scalar(value).square_root().to_python()
    assert abs(value - root * root) <= root
    assert root == (math.isqrt(4 * value) + 1) // 2


def test_square_roots_at_the_edges():
    values = [0, 1, 2, 3, 6, 7, 2**64, 2**126 - 1, 2**126 - 2**63]
    roots = Elements.of_python(values).reshape(3, 3).square_root()
    assert roots.shape == (3, 3)
    assert roots.to_python() == [0, 1, 1, 2, 2, 3, 2**32, 2**63, 2**63 - 1]


def test_square_roots_of_negative_numbers_are_refused():
    values = Elements.of_python([4, 2, -9, 1]).reshape(2, 2)
    with pytest.raises(FieldError, match="element 2 is -9"):
        values.square_root()
    with pytest.raises(FieldError, match=f"element 0 is -{MODULUS // 2}"):
        Elements.scalar(2**126).square_root()


@given(lists, st.integers(0, 127))
def test_binary_digits(drawn, count):
    digits = Elements.of_python(drawn).bits(count)
    assert digits.shape == (len(drawn), count)
    assert digits.to_python() == [each >> i & 1 for each in drawn for i in range(count)]


def test_digits_are_on_a_new_last_axis():
    assert SIX.reshape(2, 3).bits(5).shape == (2, 3, 5)
    assert Elements.scalar(6).bits(4).to_python() == [0, 1, 1, 0]


@pytest.mark.parametrize("count", [-1, 128])
def test_other_numbers_of_digits_are_refused(count):
    with pytest.raises(FieldError, match=f"{count} binary digits"):
        SIX.bits(count)


def test_shapes():
    scalar, matrix = Elements.scalar(5), SIX.reshape(2, 3)
    assert (scalar.shape, scalar.size, scalar.ndim) == ((), 1, 0)
    assert (matrix.shape, matrix.size, matrix.ndim, len(matrix)) == ((2, 3), 6, 2, 2)
    assert matrix.reshape(3, -1).shape == (3, 2)
    assert matrix.flat.equals(SIX)
    assert scalar.flat.shape == (1,)
    assert Elements.zeros(4).shape == (4,)
    assert Elements.zeros((2, 0, 3)).size == 0
    assert repr(matrix) == "Elements(shape=(2, 3))"
    with pytest.raises(TypeError, match="no length"):
        len(scalar)
    with pytest.raises(ValueError, match="cannot reshape"):
        SIX.reshape(4)


@pytest.mark.parametrize(
    "index",
    [
        0,
        -1,
        (1, 2),
        slice(1, None),
        (slice(None), 1),
        (slice(None, None, -1), slice(0, 3, 2)),
        (..., 0),
        np.array([1, 0, 1, 1]),
        (np.array([[0, 1], [1, 1]]), np.array([2, 0])),
        np.array([[True, False, True], [False, True, True]]),
        (None, 1),
        slice(5, 9),
    ],
)
def test_indices_are_those_of_numpy(index):
    matrix = SIX.reshape(2, 3)
    assert_same(matrix[index], np.asarray(as_objects(matrix)[index], object))


def test_indices_never_reach_the_limbs():
    with pytest.raises(IndexError):
        SIX[0, 0]
    with pytest.raises(IndexError):
        SIX[6]


def test_axes_move_as_in_numpy():
    cube = Elements.of_python(range(24)).reshape(2, 3, 4)
    objects = as_objects(cube)
    assert_same(cube.transpose(), objects.T)
    assert_same(cube.transpose(1, 0, 2), objects.transpose(1, 0, 2))
    assert_same(
        cube[:, :1].broadcast_to((5, 2, 3, 4)), np.broadcast_to(objects[:, :1], (5, 2, 3, 4))
    )
    assert_same(cube.repeat(2, 1), np.repeat(objects, 2, 1))
    assert_same(cube.repeat(3, axis=-1), np.repeat(objects, 3, -1))


def test_parts_are_joined_flat():
    parts = [SIX.reshape(2, 3), Elements.scalar(9), Elements.zeros(0)]
    assert Elements.concatenate(parts).to_python() == [*SIX.to_python(), 9]
    assert Elements.concatenate([]).shape == (0,)


def test_equality_is_of_shapes_and_elements():
    assert SIX.equals(Elements.of_python(SIX.to_python()))
    assert not SIX.equals(SIX.reshape(2, 3))
    assert not SIX.equals(-SIX)
    assert Elements.zeros((2, 2)).is_zero()
    assert (SIX - SIX).is_zero()
    assert not SIX.is_zero()


@pytest.mark.parametrize(
    "limbs", [np.zeros((3, 2)), np.zeros((3, 2), np.int64), np.zeros(3, np.uint64), np.uint64(1)]
)
def test_limbs_of_another_form_are_refused(limbs):
    with pytest.raises(FieldError, match="must be uint64 with a last axis of 2"):
        Elements(np.asarray(limbs))


def test_operands_are_not_modified():
    before = SIX.encode()
    SIX + SIX, SIX * 3, -SIX, SIX.sum(), SIX.bits(9), SIX.rounded_shift(3), SIX[1:] * SIX[:5]
    assert SIX.encode() == before


def test_elements_can_be_pickled():
    assert pickle.loads(pickle.dumps(SIX)).equals(SIX)
