"""Arrays of elements of the prime field F_p, p = 2^127 - 1, and their arithmetic."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from opfl_chain.numerics import kernels

MODULUS: Final = kernels.P
ELEMENT_BYTES: Final = 16

Shape: TypeAlias = tuple[int, ...]

_LIMBS: Final = 2
_PACKED: Final = np.dtype(f"V{ELEMENT_BYTES}")
"""An element as one opaque item, which numpy moves faster than two."""
_MODULUS_BITS: Final = 127
_KERNEL_AXES: Final = 3
INTEGER_LIMIT: Final = 1 << kernels.INTEGER_BITS
"""Magnitudes of integers in `Elements.times_integers` are below it."""


class FieldError(ValueError):
    """Elements, or an operation on them, that the field does not have."""


class Elements:
    """An array of elements of F_p, each canonical: in [0, p). It is never modified.

    ``limbs`` has the low and the high 64 bits of each element on its last axis. Whoever makes
    elements of limbs answers for their being canonical: :meth:`decode` checks it.
    """

    __slots__ = ("limbs",)
    __array_ufunc__ = None  # so that numpy's operators do not take elements for objects

    limbs: npt.NDArray[np.uint64]

    def __init__(self, limbs: npt.NDArray[np.uint64]) -> None:
        if limbs.dtype != np.uint64 or not limbs.ndim or limbs.shape[-1] != _LIMBS:
            raise FieldError(
                f"limbs have dtype {limbs.dtype} and shape {limbs.shape},"
                f" they must be uint64 with a last axis of {_LIMBS}"
            )
        self.limbs = limbs if limbs.flags.carray else limbs.copy(order="C")

    @classmethod
    def of_integers(cls, values: npt.NDArray[Any]) -> "Elements":
        """Return the elements of int64 or uint64 integers; a negative v is p - |v|."""
        if values.dtype == np.uint64:
            limbs = np.zeros((*values.shape, _LIMBS), np.uint64)
            limbs[..., 0] = values
            return cls(limbs)
        if values.dtype != np.int64:
            raise FieldError(f"integers have dtype {values.dtype}, it must be int64 or uint64")
        limbs = np.empty((*values.shape, _LIMBS), np.uint64)
        kernels.of_integers(_own(values.reshape(-1)), _flat(limbs))
        return cls(limbs)

    @classmethod
    def of_python(cls, values: Iterable[int]) -> "Elements":
        """Return the flat elements of integers of any size, reduced modulo p."""
        return cls._of_bytes(
            b"".join((each % MODULUS).to_bytes(ELEMENT_BYTES, "little") for each in values)
        )

    @classmethod
    def scalar(cls, value: int) -> "Elements":
        """Return an element of shape ()."""
        return cls.of_python([value]).reshape()

    @classmethod
    def zeros(cls, shape: int | Shape) -> "Elements":
        """Return elements that are all 0."""
        sizes = (shape,) if isinstance(shape, int) else shape
        return cls(np.zeros((*sizes, _LIMBS), np.uint64))

    @classmethod
    def uniform(cls, stream: bytes) -> "Elements":
        """Return flat elements of uniform bytes: 127 bits of each 16 bytes, where p becomes 0."""
        elements = cls._of_bytes(_whole("stream", stream))
        kernels.reduce_stream(elements.limbs)
        return elements

    @classmethod
    def concatenate(cls, parts: "Sequence[Elements]") -> "Elements":
        """Return all elements of the parts, flat."""
        if not parts:
            return cls.zeros(0)
        return cls(np.concatenate([_flat(each.limbs) for each in parts]))

    @classmethod
    def decode(cls, data: bytes, name: str = "elements") -> "Elements":
        """Read flat elements from their canonical bytes; ``name`` is for errors."""
        elements = cls._of_bytes(_whole(name, data))
        wrong = kernels.first_not_canonical(elements.limbs)
        if wrong >= 0:
            value = elements[wrong].to_python()[0]
            raise FieldError(f"{name}[{wrong}] is {value:#x}, it must be below 2^127 - 1")
        return elements

    def encode(self) -> bytes:
        """Return the canonical bytes: 16 an element, little-endian."""
        return self.limbs.tobytes()

    @property
    def shape(self) -> Shape:
        """The sizes of the axes."""
        return self.limbs.shape[:-1]

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.limbs.size // _LIMBS

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.limbs.ndim - 1

    @property
    def flat(self) -> "Elements":
        """The same elements on one axis."""
        return Elements(_flat(self.limbs))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a single element of shape () has no length")
        return self.limbs.shape[0]

    def __repr__(self) -> str:
        return f"Elements(shape={self.shape})"

    def __getitem__(self, index: Any) -> "Elements":
        return _unpacked(self._packed[index])

    def reshape(self, *shape: int) -> "Elements":
        """Return the same elements in another shape."""
        return _unpacked(self._packed.reshape(shape))

    def transpose(self, *axes: int) -> "Elements":
        """Return the elements with their axes in another order: without ``axes``, reversed."""
        return _unpacked(self._packed.transpose(*axes))

    def broadcast_to(self, shape: Shape) -> "Elements":
        """Return the elements repeated along new axes and along axes of size 1."""
        return _unpacked(np.broadcast_to(self._packed, shape))

    def repeat(self, count: int, axis: int) -> "Elements":
        """Return each element ``count`` times in a row, along an axis."""
        return _unpacked(np.repeat(self._packed, count, axis))

    def __add__(self, other: "Elements") -> "Elements":
        if not isinstance(other, Elements):
            return NotImplemented
        return _elementwise(kernels.add, self, other)

    def __sub__(self, other: "Elements") -> "Elements":
        if not isinstance(other, Elements):
            return NotImplemented
        return _elementwise(kernels.subtract, self, other)

    def __neg__(self) -> "Elements":
        return Elements.zeros(()) - self

    def __mul__(self, other: "Elements | int") -> "Elements":
        factor = Elements.scalar(other) if isinstance(other, int) else other
        if not isinstance(factor, Elements):
            return NotImplemented
        return _elementwise(kernels.multiply, self, factor)

    def sum(self, axis: int | None = None) -> "Elements":
        """Return the sum of all elements, or the sums along an axis."""
        if axis is None:
            return self.reshape(-1).sum(0)
        if not -self.ndim <= axis < self.ndim:
            raise FieldError(f"elements of shape {self.shape} have no axis {axis}")
        before, after = self.shape[: axis % self.ndim], self.shape[axis % self.ndim + 1 :]
        sums = np.zeros((*before, *after, _LIMBS), np.uint64)
        outer, inner = math.prod(before), math.prod(after)
        kernels.add_up(self.limbs.reshape(outer, self.shape[axis], inner, _LIMBS), _flat(sums))
        return Elements(sums)

    def dot(self, other: "Elements") -> "Elements":
        """Return the inner product of all elements, of shape ()."""
        if self.shape != other.shape:
            raise FieldError(f"inner product of shapes {self.shape} and {other.shape}")
        return self.reshape(1, -1).matmul(other.reshape(-1, 1)).reshape()

    def matmul(self, other: "Elements") -> "Elements":
        """Return the product of matrices."""
        _check_matrices(self.shape, other.shape)
        product = np.empty((self.shape[0], other.shape[1], _LIMBS), np.uint64)
        kernels.matmul(self.limbs, other.limbs, product)
        return Elements(product)

    def times_integers(self, matrix: npt.NDArray[np.int64]) -> "Elements":
        """Return the product with a matrix of integers of magnitudes below 2^32."""
        _check_matrices(self.shape, matrix.shape)
        if matrix.dtype != np.int64:
            raise FieldError(f"matrix has dtype {matrix.dtype}, it must be int64")
        if matrix.size and not -INTEGER_LIMIT < matrix.min() <= matrix.max() < INTEGER_LIMIT:
            raise FieldError(
                f"matrix has entries from {matrix.min()} to {matrix.max()},"
                f" their magnitudes must be below 2^{kernels.INTEGER_BITS}"
            )
        product = np.empty((self.shape[0], matrix.shape[1], _LIMBS), np.uint64)
        kernels.times_integers(self.limbs, _own(matrix), product)
        return Elements(product)

    def equals(self, other: "Elements") -> bool:
        """Return whether shape and elements are the same."""
        return np.array_equal(self.limbs, other.limbs)

    def is_zero(self) -> bool:
        """Return whether all elements are 0."""
        return not self.limbs.any()

    def to_python(self) -> list[int]:
        """Return the elements as integers in [0, p), flat."""
        return [low | high << 64 for low, high in _flat(self.limbs).tolist()]

    def to_signed(self) -> list[int]:
        """Return the elements as integers in (-p/2, p/2), flat."""
        return [each - MODULUS if each > MODULUS // 2 else each for each in self.to_python()]

    def to_floats(self) -> npt.NDArray[np.float64]:
        """Return the nearest floats to the elements as integers in (-p/2, p/2)."""
        floats = np.empty(self.shape, np.float64)
        kernels.to_floats(_flat(self.limbs), floats.reshape(-1))
        return floats

    def rounded_shift(self, bits: int) -> "Elements":
        """Return the nearest integers to x / 2^bits, halves up, for elements x in (-p/2, p/2)."""
        if not 0 <= bits <= _MODULUS_BITS:
            raise FieldError(f"shift by {bits} bits, it must be by 0 to {_MODULUS_BITS}")
        if not bits:
            return self
        quotients = np.empty_like(self.limbs)
        kernels.shift(_flat(self.limbs), bits, _flat(quotients))
        return Elements(quotients)

    def square_root(self) -> "Elements":
        """Return the nearest integers to the roots of elements in [0, p/2)."""
        roots = np.empty_like(self.limbs)
        negative = kernels.square_root(_flat(self.limbs), _flat(roots))
        if negative >= 0:
            value = self.flat[negative].to_signed()[0]
            raise FieldError(f"element {negative} is {value}, a negative number has no root")
        return Elements(roots)

    def bits(self, count: int) -> "Elements":
        """Return the low ``count`` binary digits of each element on a new last axis, low first."""
        if not 0 <= count <= _MODULUS_BITS:
            raise FieldError(f"{count} binary digits, an element has 0 to {_MODULUS_BITS}")
        digits = np.empty((*self.shape, count, _LIMBS), np.uint64)
        kernels.bits(_flat(self.limbs), digits.reshape(self.size, count, _LIMBS))
        return Elements(digits)

    @property
    def _packed(self) -> npt.NDArray[np.void]:
        return self.limbs.view(_PACKED)[..., 0]

    @classmethod
    def _of_bytes(cls, data: bytes) -> "Elements":
        return cls(np.frombuffer(data, "<u8").reshape(-1, _LIMBS).copy())


def _unpacked(items: Any) -> Elements:
    packed = np.asarray(items, order="C")
    return Elements(packed[..., np.newaxis].view(np.uint64))


def _flat(limbs: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return limbs.reshape(-1, _LIMBS)


def _own(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array of the kind that kernels are compiled for: a copy if this is another."""
    return values if values.flags.carray else values.copy(order="C")


def _whole(name: str, data: bytes) -> bytes:
    if len(data) % ELEMENT_BYTES:
        raise FieldError(
            f"{name} has {len(data)} bytes, it must be whole elements of {ELEMENT_BYTES} bytes"
        )
    return data


def _check_matrices(left: Shape, right: Shape) -> None:
    if len(left) != 2 or len(right) != 2 or left[1] != right[0]:
        raise FieldError(f"product of shapes {left} and {right}, expected (m, k) and (k, n)")


def _elementwise(kernel: Any, left: Elements, right: Elements) -> Elements:
    if left.shape == right.shape:
        shape, axes = left.shape, [(left.size, 1, 1)]
    elif not right.ndim:
        shape, axes = left.shape, [(left.size, 1, 0)]
    else:
        shape, axes = _broadcast(left, right)
    if len(axes) > _KERNEL_AXES:
        return _elementwise(kernel, left.broadcast_to(shape), right.broadcast_to(shape))
    padding = [(1, 0, 0)] * (_KERNEL_AXES - len(axes))
    sizes, left_steps, right_steps = zip(*padding, *axes, strict=True)
    out = np.empty((*shape, _LIMBS), np.uint64)
    kernel(_flat(left.limbs), _flat(right.limbs), _flat(out), sizes, left_steps, right_steps)
    return Elements(out)


def _broadcast(left: Elements, right: Elements) -> tuple[Shape, list[tuple[int, int, int]]]:
    """Return the common shape, and each axis as its size and its steps within both operands.

    Axes of size 1 are left out, and axes that can be walked as one are joined.
    """
    try:
        shape = np.broadcast_shapes(left.shape, right.shape)
    except ValueError:
        raise FieldError(
            f"elements of shapes {left.shape} and {right.shape} do not broadcast together"
        ) from None
    left_steps, right_steps = (
        (step // ELEMENT_BYTES for step in np.broadcast_to(each._packed, shape).strides)
        for each in (left, right)
    )
    axes: list[tuple[int, int, int]] = []
    for size, a, b in zip(shape, left_steps, right_steps, strict=True):
        if size == 1:
            continue
        if axes and axes[-1][1:] == (a * size, b * size):
            axes[-1] = (axes[-1][0] * size, a, b)
        else:
            axes.append((size, a, b))
    return shape, axes
