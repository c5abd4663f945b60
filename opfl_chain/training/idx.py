"""The idx format, in which MNIST and its successors are published."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from opfl_chain.training.errors import DataFileInvalid

_UNSIGNED_BYTES = 8


def read_idx(data: bytes, path: Path | str) -> NDArray[np.uint8]:
    """The array of bytes that an idx file holds; `path` is for errors.

    The header is 0, 0, the type of the elements, the number of axes, and the length of each axis
    as four big-endian bytes.
    """
    if len(data) < 4 or data[:2] != b"\0\0":
        raise DataFileInvalid(path, f"is not an idx file: it starts with {data[:4].hex() or '-'}")
    kind, axes = data[2], data[3]
    if kind != _UNSIGNED_BYTES:
        raise DataFileInvalid(
            path, f"holds elements of type {kind:#04x}, only bytes (0x08) are read"
        )
    start = 4 + 4 * axes
    if not axes or len(data) < start:
        raise DataFileInvalid(path, f"ends within its header of {axes} axes")
    shape = tuple(int(length) for length in np.frombuffer(data, ">u4", axes, 4))
    if len(data) - start != math.prod(shape):
        raise DataFileInvalid(
            path,
            f"should hold {math.prod(shape):,} bytes of shape {shape} and holds"
            f" {len(data) - start:,}: it is truncated or damaged",
        )
    try:
        return np.frombuffer(data, np.uint8, offset=start).reshape(shape)
    except ValueError as error:  # more axes than numpy has, or longer ones
        raise DataFileInvalid(path, f"holds an array that cannot be: {error}") from error


def write_idx(array: NDArray[np.uint8]) -> bytes:
    """The idx file of an array of bytes."""
    header = bytes([0, 0, _UNSIGNED_BYTES, array.ndim])
    return header + np.array(array.shape, ">u4").tobytes() + array.tobytes()
