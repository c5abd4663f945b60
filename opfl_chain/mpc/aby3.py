"""Between Share and libspu's own share, bit by bit.

A `libspu.Share` is a serialised header and chunks of content. libspu copies what a chunk holds
before it compares sizes, so it must never be given one that was not made or checked here.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from opfl_chain.mpc.errors import ShareInvalid
from opfl_chain.mpc.native import libspu
from opfl_chain.mpc.ranks import Rank
from opfl_chain.mpc.shares import Share, Storage

CHUNK_BYTES: Final = 128 << 20
"""As SPU's own shares: protobuf allows no message of 2 GB."""

_DTYPES: Final = {
    "bool": libspu.DataType.DT_I1,
    "int8": libspu.DataType.DT_I8,
    "uint8": libspu.DataType.DT_U8,
    "int16": libspu.DataType.DT_I16,
    "uint16": libspu.DataType.DT_U16,
    "int32": libspu.DataType.DT_I32,
    "uint32": libspu.DataType.DT_U32,
    "int64": libspu.DataType.DT_I64,
    "uint64": libspu.DataType.DT_U64,
    "float32": libspu.DataType.DT_F32,
    "float64": libspu.DataType.DT_F64,
}
_NAMES: Final = {int(number): name for name, number in _DTYPES.items()}


def to_native(share: Share, chunk_bytes: int = CHUNK_BYTES) -> Any:
    """The `libspu.Share` to give to a runtime."""
    meta = libspu.ValueMeta()
    meta.data_type = _DTYPES[share.dtype]
    meta.visibility = _visibility(share.storage)
    # Assigned as a whole: `meta.shape.dims = ...` would write to a default that all metas share.
    meta.shape = list(share.shape)
    meta.storage_type = share.storage.name
    content = np.ascontiguousarray(share.words).reshape(-1).view(np.uint8).data
    native = libspu.Share()
    native.meta = meta.SerializeToString()
    native.share_chunks = [
        _chunk(len(content), start, bytes(content[start : start + chunk_bytes]))
        for start in range(0, len(content), chunk_bytes)
    ]
    return native


def from_native(rank: Rank, native: Any) -> Share:
    """The share that a runtime returned, or that anybody else made: nothing in it is trusted."""
    meta = libspu.ValueMeta()
    if not meta.ParseFromString(native.meta):
        raise ShareInvalid(f"the header of {len(native.meta)} bytes is malformed")
    storage, dtype, shape = Storage(meta.storage_type), int(meta.data_type), tuple(meta.shape.dims)
    if dtype not in _NAMES:
        raise ShareInvalid(f"the header has data type {dtype}, which programs do not use")
    if meta.is_complex:
        raise ShareInvalid("the share is of complex numbers, which programs do not use")
    if meta.visibility != _visibility(storage):
        raise ShareInvalid(f"{storage.name} is declared as {meta.visibility.name}")
    if any(side < 0 for side in shape):
        raise ShareInvalid(f"the shape {shape} has a negative side")
    words_shape = storage.words_shape(shape)
    content = _content(native.share_chunks, math.prod(words_shape) * storage.word.itemsize)
    words = np.frombuffer(content, storage.word).reshape(words_shape)
    return Share(rank, _NAMES[dtype], shape, storage, words)


def _visibility(storage: Storage) -> Any:
    return libspu.Visibility.VIS_PUBLIC if storage.is_public else libspu.Visibility.VIS_SECRET


def _chunk(total: int, offset: int, content: bytes) -> bytes:
    chunk = libspu.ValueChunk()
    chunk.total_bytes = total
    chunk.chunk_offset = offset
    chunk.content = content
    serialised: bytes = chunk.SerializeToString()
    return serialised


def _content(serialised: list[bytes], expected: int) -> bytes:
    parts: dict[int, bytes] = {}
    for number, data in enumerate(serialised):
        chunk = libspu.ValueChunk()
        if not chunk.ParseFromString(data):
            raise ShareInvalid(f"chunk {number} of {len(data)} bytes is malformed")
        if chunk.total_bytes != expected:
            raise ShareInvalid(
                f"chunk {number} is of a share of {chunk.total_bytes} bytes, the header says"
                f" {expected}"
            )
        if chunk.chunk_offset in parts:
            raise ShareInvalid(f"two chunks start at byte {chunk.chunk_offset}")
        parts[chunk.chunk_offset] = chunk.content
    end = 0
    for offset, part in sorted(parts.items()):
        if offset != end:
            raise ShareInvalid(f"a chunk starts at byte {offset}, the one before ends at {end}")
        end += len(part)
    if end != expected:
        raise ShareInvalid(f"chunks hold {end} bytes, the header says {expected}")
    return b"".join(part for _, part in sorted(parts.items()))
