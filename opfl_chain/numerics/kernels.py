"""Compiled loops over elements of F_p, p = 2^127 - 1.

An element is a pair of 64-bit limbs, the low one first, and canonical: in [0, p). Arrays of
elements are C-contiguous, aligned, writable arrays of uint64 with the limbs on the last axis.

Each kernel is called with one signature only. Processes that compile it at the same time then write
the same code into numba's cache, which could mix up the codes of several signatures. All kernels
stand in one file, because numba renews cached code only if the file of the kernel itself changed.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

Limbs: TypeAlias = npt.NDArray[np.uint64]
"""Elements, as an array of shape (..., 2)."""

Pieces: TypeAlias = npt.NDArray[np.int64]
"""Elements in pieces of 43 bits, as an array of shape (n, 4) whose last column is 0.

Many of them are added without a carry, and one is added by one instruction.
"""
Coins: TypeAlias = npt.NDArray[np.uint8]
Axes: TypeAlias = tuple[int, int, int]
"""Sizes of three axes, or distances between neighbours along them, in elements."""

P: Final = (1 << 127) - 1
PIECE_BITS: Final = 43
LANES: Final = 4
GROUP: Final = 8
"""Elements whose subset sums are tabulated: one for each bit of a byte of coins."""
INTEGER_BITS: Final = 32
"""Integers that multiply elements have magnitudes below 2^32."""

_LIMB_BITS: Final = 64
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_PIECE_MASK: Final = np.uint64((1 << PIECE_BITS) - 1)
_TOP: Final = np.uint64(P >> 64)
_FULL: Final = np.uint64((1 << 64) - 1)
_SUBSETS: Final = 1 << GROUP
_GROUPS_AT_ONCE: Final = 1 << 16
"""A group adds less than 2^46 to a lane, so the sum of these stays below 2^62."""
_LINE: Final = 4
"""Elements of a line of the cache."""
_TILE: Final = 1 << 14
"""Elements of the columns that stay in the cache while all rows are multiplied by them."""
_POWERS: Final = 2.0 ** np.arange(64, -64, -1)
"""The factors 2^(64 - n) of floats whose integers have n leading zeros."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _kernel(function: _Function) -> _Function:
    try:
        compiled = njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # no folder for compiled code is writable: each process compiles its own
        compiled = njit(nogil=True, error_model="numpy")(function)
    return cast(_Function, compiled)


def _intrinsic(rule: Callable[..., Any]) -> Any:
    return intrinsic(rule)


def _tuple_of(limbs: int) -> Any:
    return types.UniTuple(types.uint64, limbs)  # type: ignore[no-untyped-call]


# Formulas: they run when a kernel is compiled, and their operators emit instructions.


class _Integer:
    """An unsigned integer of any width in compiled code."""

    def __init__(self, builder: ir.IRBuilder, value: ir.Value) -> None:
        self.builder = builder
        self.value = value

    @property
    def bits(self) -> int:
        return cast(int, self.value.type.width)

    def __add__(self, other: "_Integer | int") -> "_Integer":
        return self._new(self.builder.add(self.value, self._operand(other)))

    def __sub__(self, other: "_Integer | int") -> "_Integer":
        return self._new(self.builder.sub(self.value, self._operand(other)))

    def __mul__(self, other: "_Integer | int") -> "_Integer":
        return self._new(self.builder.mul(self.value, self._operand(other)))

    def __and__(self, other: "_Integer | int") -> "_Integer":
        return self._new(self.builder.and_(self.value, self._operand(other)))

    def __or__(self, other: "_Integer | int") -> "_Integer":
        return self._new(self.builder.or_(self.value, self._operand(other)))

    def __xor__(self, other: "_Integer | int") -> "_Integer":
        return self._new(self.builder.xor(self.value, self._operand(other)))

    def __lshift__(self, bits: "_Integer | int") -> "_Integer":
        return self._new(self.builder.shl(self.value, self._operand(bits)))

    def __rshift__(self, bits: "_Integer | int") -> "_Integer":
        return self._new(self.builder.lshr(self.value, self._operand(bits)))

    def __lt__(self, other: "_Integer | int") -> "_Integer":
        return self._new(self.builder.icmp_unsigned("<", self.value, self._operand(other)))

    def to(self, bits: int) -> "_Integer":
        """Return the same integer in more bits, or its low bits."""
        resized = self.builder.zext if bits > self.bits else self.builder.trunc
        return self._new(resized(self.value, ir.IntType(bits)))

    def signed_to(self, bits: int) -> "_Integer":
        """Return the same two's complement integer in more bits."""
        return self._new(self.builder.sext(self.value, ir.IntType(bits)))

    def signed_shift(self, bits: "_Integer | int") -> "_Integer":
        return self._new(self.builder.ashr(self.value, self._operand(bits)))

    def leading_zeros(self) -> "_Integer":
        return self._new(self.builder.ctlz(self.value, ir.Constant(ir.IntType(1), 0)))

    def _new(self, value: ir.Value) -> "_Integer":
        return _Integer(self.builder, value)

    def _operand(self, other: "_Integer | int") -> ir.Value:
        return ir.Constant(self.value.type, other) if isinstance(other, int) else other.value


def _plus(a: _Integer, b: _Integer) -> _Integer:
    """Return a + b in F_p, for a, b <= p that are not both p."""
    above = a + b + 1
    return (above & P) - ((above >> 127) ^ 1)


def _minus(a: _Integer, b: _Integer) -> _Integer:
    return _of_signed(a - b)


def _of_signed(x: _Integer) -> _Integer:
    """Return the element of a two's complement integer of 128 bits, in (-p, p)."""
    return (x & P) - (x >> 127)


def _partial_products(a: _Integer, b: _Integer) -> tuple[_Integer, _Integer, _Integer]:
    """Return l, m, h with a b = l + 2^64 m + 2^128 h; as a, b < 2^127, m does not overflow."""
    (a0, a1), (b0, b1) = ((x.to(64).to(128), x >> 64) for x in (a, b))
    return a0 * b0, a0 * b1 + a1 * b0, a1 * b1


def _times(a: _Integer, b: _Integer) -> _Integer:
    low, middle, high = _partial_products(a, b)
    bottom = low + (middle << 64)
    top = high + (middle >> 64) + (bottom < low).to(128)
    return _plus((top << 1) | (bottom >> 127), bottom & P)


def _folded(x: _Integer) -> _Integer:
    """Return the element of any integer of 128 bits."""
    return _plus(x & P, x >> 127)


def _rotated(x: _Integer, bits: int) -> _Integer:
    """Return 2^bits x in F_p."""
    return ((x << bits) & P) | (x >> (127 - bits))


def _total_with(total: _Integer, x: _Integer) -> _Integer:
    return total + x.to(total.bits)


def _total_with_product(total: _Integer, a: _Integer, b: _Integer) -> _Integer:
    low, middle, high = (x.to(total.bits) for x in _partial_products(a, b))
    return total + low + (middle << 64) + (high << 128)


def _of_total(total: _Integer) -> _Integer:
    """Return the element of an integer below 2^320, since 2^128 = 2 and 2^256 = 4 in F_p."""
    low, middle, high = (_folded((total >> at).to(128)) for at in (0, 128, 256))
    return _plus(low, _plus(_rotated(middle, 1), _rotated(high, 2)))


def _total_with_multiple(total: _Integer, a: _Integer, factor: _Integer) -> _Integer:
    """Add factor a to a total whose halves are those of the low limbs and of the high limbs."""
    low, high = ((total >> at).to(128) for at in (0, 128))
    low += a.to(64).to(128) * factor.to(128)
    high += (a >> 64) * factor.to(128)
    return low.to(256) | (high.to(256) << 128)


def _of_multiples(total: _Integer, excess: _Integer) -> _Integer:
    """Return the element of such a total, less 2^32 times the excess."""
    low, high = (_folded((total >> at).to(128)) for at in (0, 128))
    return _minus(_plus(low, _rotated(high, 64)), _rotated(excess, INTEGER_BITS))


def _of_pieces(first: _Integer, second: _Integer, third: _Integer) -> _Integer:
    low, middle, high = (_of_signed(x.signed_to(128)) for x in (first, second, third))
    return _plus(low, _plus(_rotated(middle, PIECE_BITS), _rotated(high, 2 * PIECE_BITS)))


def _nearest_quotient(x: _Integer, bits: _Integer) -> _Integer:
    """Return the nearest integer to x / 2^bits, halves up, for x in (-p/2, p/2) and bits > 0."""
    negative = x >> 126
    signed = x + negative + (negative << 127)  # x - p is x + 1 - 2^127
    return _of_signed((signed.signed_shift(bits.to(128) - 1) + 1).signed_shift(1))


def _leading_limb(x: _Integer) -> _Integer:
    """Return the 64 bits from the leading one on, and above them the number of zeros before it.

    The last bit is set if any bit that is left out is set, so that rounding sees it.
    """
    zeros = (x | 1).leading_zeros()
    shifted = x << zeros
    rest = (shifted.to(64) < 1) ^ 1
    return (shifted >> 64) | rest.to(128) | (zeros << 64)


def _excess_over_square(x: _Integer, root: _Integer) -> _Integer:
    return x - root.to(128) * root.to(128)


# Operations: formulas as functions that kernels call. An integer is passed as a tuple of limbs.


def _operation(formula: Callable[..., _Integer], limbs: int, *kinds: Any) -> tuple[Any, Any]:
    result = _tuple_of(limbs)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        integers = [_joined(builder, *each) for each in zip(kinds, arguments, strict=True)]
        return context.make_tuple(builder, result, _split(formula(*integers)))

    return result(*kinds), emit


def _joined(builder: ir.IRBuilder, kind: Any, value: ir.Value) -> _Integer:
    if not isinstance(kind, types.UniTuple):
        return _Integer(builder, value)
    limbs = [_Integer(builder, builder.extract_value(value, i)) for i in range(kind.count)]
    whole = limbs[0].to(_LIMB_BITS * kind.count)
    for i, limb in enumerate(limbs[1:], start=1):
        whole |= limb.to(whole.bits) << _LIMB_BITS * i
    return whole


def _split(x: _Integer) -> list[ir.Value]:
    return [(x >> at).to(_LIMB_BITS).value for at in range(0, x.bits, _LIMB_BITS)]


@_intrinsic
def _add(_: Any, a: Any, b: Any) -> Any:
    return _operation(_plus, 2, a, b)


@_intrinsic
def _sub(_: Any, a: Any, b: Any) -> Any:
    return _operation(_minus, 2, a, b)


@_intrinsic
def _mul(_: Any, a: Any, b: Any) -> Any:
    return _operation(_times, 2, a, b)


@_intrinsic
def _gather(_: Any, total: Any, x: Any) -> Any:
    return _operation(_total_with, 5, total, x)


@_intrinsic
def _gather_product(_: Any, total: Any, a: Any, b: Any) -> Any:
    return _operation(_total_with_product, 5, total, a, b)


@_intrinsic
def _reduce(_: Any, total: Any) -> Any:
    return _operation(_of_total, 2, total)


@_intrinsic
def _gather_multiple(_: Any, total: Any, a: Any, factor: Any) -> Any:
    return _operation(_total_with_multiple, 4, total, a, factor)


@_intrinsic
def _reduce_multiples(_: Any, total: Any, excess: Any) -> Any:
    return _operation(_of_multiples, 2, total, excess)


@_intrinsic
def _put_together(_: Any, first: Any, second: Any, third: Any) -> Any:
    return _operation(_of_pieces, 2, first, second, third)


@_intrinsic
def _quotient(_: Any, x: Any, bits: Any) -> Any:
    return _operation(_nearest_quotient, 2, x, bits)


@_intrinsic
def _normalise(_: Any, x: Any) -> Any:
    return _operation(_leading_limb, 2, x)


@_intrinsic
def _square_excess(_: Any, x: Any, root: Any) -> Any:
    return _operation(_excess_over_square, 2, x, root)


# Memory: an element is read and written as one integer, since the compiler would otherwise try to
# vectorise the limbs, to its loss; a row of pieces as one vector.

_ELEMENT: Final = ir.IntType(128)
_ROW: Final = ir.VectorType(ir.IntType(64), LANES)


def _place(context: Any, builder: ir.IRBuilder, item: Any, kind: Any, array: Any, i: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(builder.bitcast(data, item.as_pointer()), [i])


@_intrinsic
def _at(_: Any, limbs: Any, index: Any) -> Any:
    """Return an element by its flat index."""
    result = _tuple_of(2)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, _ELEMENT, limbs, *arguments)
        element = _Integer(builder, builder.load(place, align=8))
        return context.make_tuple(builder, result, _split(element))

    return result(limbs, types.intp), emit


@_intrinsic
def _put(_: Any, limbs: Any, index: Any, element: Any) -> Any:
    """Store an element by its flat index."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        array, position, pair = arguments
        place = _place(context, builder, _ELEMENT, limbs, array, position)
        builder.store(_joined(builder, element, pair).value, place, align=8)
        return context.get_dummy_value()

    return types.void(limbs, types.intp, element), emit


def _row_operation(subtract: bool, out: Any, a: Any, b: Any) -> tuple[Any, Any]:
    def emit(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        to, left, right = (
            _place(context, builder, _ROW, kind, *arguments[2 * i : 2 * i + 2])
            for i, kind in enumerate((out, a, b))
        )
        rows = [builder.load(place, align=8) for place in (left, right)]
        row = builder.sub(*rows) if subtract else builder.add(*rows)
        builder.store(row, to, align=8)
        return context.get_dummy_value()

    return types.void(out, types.intp, a, types.intp, b, types.intp), emit


@_intrinsic
def _add_rows(_: Any, out: Any, i: Any, a: Any, j: Any, b: Any, k: Any) -> Any:
    """Store a[j] + b[k] as out[i]."""
    return _row_operation(False, out, a, b)


@_intrinsic
def _sub_rows(_: Any, out: Any, i: Any, a: Any, j: Any, b: Any, k: Any) -> Any:
    """Store a[j] - b[k] as out[i]."""
    return _row_operation(True, out, a, b)


# Kernels.


@_kernel
def add(a: Limbs, b: Limbs, out: Limbs, shape: Axes, a_steps: Axes, b_steps: Axes) -> None:
    """Store sums, of elements that are ``steps`` apart along the axes of ``shape``."""
    at = 0
    for i in range(shape[0]):
        for j in range(shape[1]):
            left = i * a_steps[0] + j * a_steps[1]
            right = i * b_steps[0] + j * b_steps[1]
            for _ in range(shape[2]):
                _put(out, at, _add(_at(a, left), _at(b, right)))
                at += 1
                left += a_steps[2]
                right += b_steps[2]


@_kernel
def subtract(a: Limbs, b: Limbs, out: Limbs, shape: Axes, a_steps: Axes, b_steps: Axes) -> None:
    """Store differences, of elements that are ``steps`` apart along the axes of ``shape``."""
    at = 0
    for i in range(shape[0]):
        for j in range(shape[1]):
            left = i * a_steps[0] + j * a_steps[1]
            right = i * b_steps[0] + j * b_steps[1]
            for _ in range(shape[2]):
                _put(out, at, _sub(_at(a, left), _at(b, right)))
                at += 1
                left += a_steps[2]
                right += b_steps[2]


@_kernel
def multiply(a: Limbs, b: Limbs, out: Limbs, shape: Axes, a_steps: Axes, b_steps: Axes) -> None:
    """Store products, of elements that are ``steps`` apart along the axes of ``shape``."""
    at = 0
    for i in range(shape[0]):
        for j in range(shape[1]):
            left = i * a_steps[0] + j * a_steps[1]
            right = i * b_steps[0] + j * b_steps[1]
            for _ in range(shape[2]):
                _put(out, at, _mul(_at(a, left), _at(b, right)))
                at += 1
                left += a_steps[2]
                right += b_steps[2]


@_kernel
def add_up(a: Limbs, out: Limbs) -> None:
    """Store sums over the middle axis: ``a`` has shape (m, k, n, 2), ``out`` (m n, 2), of zeros."""
    outer, count, inner, _ = a.shape
    for i in range(outer):
        if inner > _LINE:  # one row after the other, as they lie in memory
            for j in range(count):
                for k in range(inner):
                    at = i * inner + k
                    _put(out, at, _add(_at(out, at), _at(a, (i * count + j) * inner + k)))
            continue
        for k in range(inner):
            total = (_ZERO, _ZERO, _ZERO, _ZERO, _ZERO)
            for j in range(count):
                total = _gather(total, _at(a, (i * count + j) * inner + k))
            _put(out, i * inner + k, _reduce(total))


@_kernel
def matmul(a: Limbs, b: Limbs, out: Limbs) -> None:
    """Store a b: ``a`` has shape (m, k, 2), ``b`` (k, n, 2), ``out`` (m, n, 2)."""
    rows, size, columns = len(a), len(b), b.shape[1]
    width = max(_LINE, _TILE // (size + 1))
    tile = b if columns == 1 else np.empty((width, size, 2), np.uint64)
    for first in range(0, columns, width):
        last = min(first + width, columns)
        if columns > 1:
            for k in range(size):
                for j in range(first, last):
                    _put(tile, (j - first) * size + k, _at(b, k * columns + j))
        for i in range(rows):
            for j in range(first, last):
                total = (_ZERO, _ZERO, _ZERO, _ZERO, _ZERO)
                for k in range(size):
                    y = _at(tile, (j - first) * size + k)
                    total = _gather_product(total, _at(a, i * size + k), y)
                _put(out, i * columns + j, _reduce(total))


@_kernel
def times_integers(a: Limbs, b: npt.NDArray[np.int64], out: Limbs) -> None:
    """Store a b for integers b, |b| < 2^32: shapes are (m, k, 2), (k, n) and (m, n, 2).

    2^32 is added to each integer to make it positive, and 2^32 times the sum of the row of ``a``
    is taken away again.
    """
    rows, size, columns = len(a), len(b), b.shape[1]
    width = max(2 * _LINE, _TILE // (size + 1))
    tile = np.empty((width, size), np.uint64)
    for first in range(0, columns, width):
        last = min(first + width, columns)
        for k in range(size):
            for j in range(first, last):
                tile[j - first, k] = np.uint64(b[k, j] + (1 << INTEGER_BITS))
        for i in range(rows):
            total = (_ZERO, _ZERO, _ZERO, _ZERO, _ZERO)
            for k in range(size):
                total = _gather(total, _at(a, i * size + k))
            excess = _reduce(total)
            for j in range(first, last):
                multiples = (_ZERO, _ZERO, _ZERO, _ZERO)
                for k in range(size):
                    factor = tile[j - first, k]
                    multiples = _gather_multiple(multiples, _at(a, i * size + k), factor)
                _put(out, i * columns + j, _reduce_multiples(multiples, excess))


@_kernel
def of_integers(integers: npt.NDArray[np.int64], out: Limbs) -> None:
    """Store the elements of flat integers."""
    for i in range(integers.size):
        low = np.uint64(integers[i])
        _put(out, i, (low - _ONE, _TOP) if integers[i] < 0 else (low, _ZERO))


@_kernel
def reduce_stream(limbs: Limbs) -> None:
    """Drop the top bit of each pair of limbs, and replace p by 0."""
    for i in range(len(limbs)):
        low, high = limbs[i, 0], limbs[i, 1] & _TOP
        _put(limbs, i, (_ZERO, _ZERO) if low == _FULL and high == _TOP else (low, high))


@_kernel
def first_not_canonical(limbs: Limbs) -> int:
    """Return the index of the first pair of limbs that is not below p, or -1."""
    for i in range(len(limbs)):
        if limbs[i, 1] >= _TOP and (limbs[i, 1] > _TOP or limbs[i, 0] == _FULL):
            return i
    return -1


@_kernel
def to_floats(a: Limbs, out: npt.NDArray[np.float64]) -> None:
    """Store the nearest floats of flat elements, read as integers in (-p/2, p/2)."""
    for i in range(len(a)):
        x, sign = _at(a, i), 1.0
        if x[1] >> 62:
            x, sign = _sub((_ZERO, _ZERO), x), -1.0
        leading, zeros = _normalise(x)
        out[i] = sign * np.float64(leading) * _POWERS[zeros]


@_kernel
def shift(a: Limbs, bits: int, out: Limbs) -> None:
    """Store the nearest integers to x / 2^bits, halves up, for x in (-p/2, p/2), 0 < bits < 128."""
    for i in range(len(a)):
        _put(out, i, _quotient(_at(a, i), np.uint64(bits)))


@_kernel
def square_root(a: Limbs, out: Limbs) -> int:
    """Store the nearest integers to the roots; return the index of the first negative, or -1."""
    for i in range(len(a)):
        x = _at(a, i)
        if x[1] >> 62:
            return i
        leading, zeros = _normalise(x)
        root = np.uint64(np.sqrt(np.float64(leading) * _POWERS[zeros]))
        low, high = _square_excess(x, root)
        excess = np.float64(np.int64(high)) * 2.0**64 + np.float64(low)
        root = np.uint64(np.int64(root) + np.int64(excess / (2.0 * np.float64(root) + 1.0)))
        low, high = _square_excess(x, root)
        while high >> 63:
            root -= _ONE
            low, high = _square_excess(x, root)
        if high or low > root:
            root += _ONE
        _put(out, i, (root, _ZERO))
    return -1


@_kernel
def bits(a: Limbs, out: Limbs) -> None:
    """Store the low binary digits of flat elements: ``out`` has shape (n, count, 2)."""
    count = out.shape[1]
    for i in range(len(a)):
        for j in range(count):
            digit = (a[i, j >> 6] >> np.uint64(j & 63)) & _ONE
            _put(out, i * count + j, (digit, _ZERO))


@_kernel
def take_apart(a: Limbs, out: Pieces) -> None:
    """Store the pieces of flat elements."""
    for i in range(len(a)):
        low, high = a[i, 0], a[i, 1]
        out[i, 0] = low & _PIECE_MASK
        out[i, 1] = ((low >> PIECE_BITS) | (high << (64 - PIECE_BITS))) & _PIECE_MASK
        out[i, 2] = high >> (2 * PIECE_BITS - 64)
        out[i, 3] = 0


@_kernel
def project(pieces: Pieces, coins: Coins, out: Limbs) -> None:
    """Add the sums of coins times elements to ``out``; the number of elements is a multiple of 8.

    The subset sums of each 8 elements are tabulated, and a byte of coins picks one of them.
    """
    count, groups = len(out), len(pieces) // GROUP
    sums = np.zeros((_SUBSETS, LANES), np.int64)
    for start in range(0, groups, _GROUPS_AT_ONCE):
        totals = np.zeros((count, LANES), np.int64)
        for group in range(start, min(start + _GROUPS_AT_ONCE, groups)):
            for b in range(GROUP):
                for subset in range(1 << b):
                    _add_rows(sums, (1 << b) + subset, sums, subset, pieces, GROUP * group + b)
            plus = coins[2 * group * count : (2 * group + 1) * count]
            minus = coins[(2 * group + 1) * count : (2 * group + 2) * count]
            for k in range(count):
                _add_rows(totals, k, totals, k, sums, plus[k])
                _sub_rows(totals, k, totals, k, sums, minus[k])
        for k in range(count):
            total = _put_together(
                np.uint64(totals[k, 0]), np.uint64(totals[k, 1]), np.uint64(totals[k, 2])
            )
            _put(out, k, _add(_at(out, k), total))


@_kernel
def project_words(words: Limbs, coins: Coins, out: Limbs) -> None:
    """Add the sums of coins times words to ``out``; the number of words is a multiple of 8."""
    count = len(out)
    sums = np.zeros(_SUBSETS, np.uint64)
    for group in range(len(words) // GROUP):
        for b in range(GROUP):
            word = words[GROUP * group + b]
            for subset in range(1 << b):
                sums[(1 << b) + subset] = sums[subset] + word
        plus = coins[2 * group * count : (2 * group + 1) * count]
        minus = coins[(2 * group + 1) * count : (2 * group + 2) * count]
        for k in range(count):
            out[k] += sums[plus[k]] - sums[minus[k]]


@_kernel
def mix(pieces: Pieces, coins: Coins, out: Limbs) -> None:
    """Store the sums of coefficients times coins; the number of elements is a multiple of 8.

    Each coefficient is added to the place that its byte of coins names, for 8 elements at once. An
    element gets the sum of all places that have its bit.
    """
    count = len(pieces)
    places = np.zeros((_SUBSETS, LANES), np.int64)
    for group in range(len(out) // GROUP):
        places[:] = 0
        plus = coins[2 * group * count : (2 * group + 1) * count]
        minus = coins[(2 * group + 1) * count : (2 * group + 2) * count]
        for k in range(count):
            _add_rows(places, plus[k], places, plus[k], pieces, k)
            _sub_rows(places, minus[k], places, minus[k], pieces, k)
        for b in range(GROUP - 1, -1, -1):
            for place in range(1 << b):
                _add_rows(places, place, places, place, places, (1 << b) + place)
            half = 1 << b
            while half > 1:
                half >>= 1
                for place in range(1 << b, (1 << b) + half):
                    _add_rows(places, place, places, place, places, place + half)
            row = places[1 << b]
            total = _put_together(np.uint64(row[0]), np.uint64(row[1]), np.uint64(row[2]))
            _put(out, GROUP * group + b, total)
