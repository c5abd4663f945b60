"""Files in the idx format, verified before use.

Hashes are of the uncompressed files, independent of the compression.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from opfl_chain.learning.errors import DataFileInvalid

_UNSIGNED_BYTES = 8


@dataclass(frozen=True)
class IdxFile:
    """One idx file: its name without .gz, its length and its hash, both uncompressed."""

    name: str
    size: int
    sha256: str


def find_file(file: IdxFile, folder: Path) -> Path | None:
    candidates = (folder / file.name, folder / f"{file.name}.gz")
    return next((path for path in candidates if path.is_file()), None)


def read_checked(file: IdxFile, path: Path) -> bytes:
    """Return the uncompressed content of a file; raise unless it is the published one."""
    try:
        with path.open("rb") as stream:
            return uncompressed(file, stream, path)
    except OSError as error:
        raise DataFileInvalid(path, f"cannot be read: {error.strerror or error}") from error


def uncompressed(file: IdxFile, stream: IO[bytes], origin: Path | str) -> bytes:
    """Return the content of a stream, gunzipped if need be; raise unless it is the published."""
    start = stream.read(2)
    stream.seek(0)
    try:
        # Read at most one byte more than expected: a gzip bomb must not fill the memory.
        if start == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=stream) as unpacked:
                content = unpacked.read(file.size + 1)
        else:
            content = stream.read(file.size + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataFileInvalid(
            origin, f"is a damaged gzip file ({error}). Delete it and fetch it again."
        ) from error
    require_published(file, content, origin)
    return content


def require_published(file: IdxFile, content: bytes, origin: Path | str) -> None:
    digest = hashlib.sha256(content).hexdigest()
    if len(content) != file.size or digest != file.sha256:
        more = "or more " if len(content) > file.size else ""
        raise DataFileInvalid(
            origin,
            f"is not the published file: uncompressed it has {len(content):,} {more}bytes and"
            f" sha256 {digest}, expected {file.size:,} and {file.sha256}. Delete it and"
            " fetch it again.",
        )


def store(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_idx(data: bytes, path: Path | str) -> NDArray[np.uint8]:
    """Read the byte array of an idx file; `path` is for errors.

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
        raise DataFileInvalid(path, f"holds an impossible array: {error}") from error


def write_idx(array: NDArray[np.uint8]) -> bytes:
    """Encode an array of bytes as an idx file."""
    header = bytes([0, 0, _UNSIGNED_BYTES, array.ndim])
    return header + np.array(array.shape, ">u4").tobytes() + array.tobytes()
