"""SPU's native library without its Python package, and conversion of shares to and from its own.

`import spu` imports JAX: a second and 120 MB that a party's process does not need. The library is
registered under its usual name, so `from spu import libspu` finds the same one.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import math
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from opfl_chain.mpc.session.errors import ShareInvalid
from opfl_chain.mpc.session.ranks import Rank
from opfl_chain.mpc.session.shares import Share, Storage

_NAME = "spu.libspu"
CHUNK_BYTES: Final = 128 << 20
"""The chunk size of SPU's own shares: protobuf messages must be smaller than 2 GB."""


def _load() -> ModuleType:
    if _NAME in sys.modules:
        return sys.modules[_NAME]
    package = importlib.util.find_spec("spu")
    if package is None or package.origin is None:
        raise ImportError("SPU is not installed: pip install spu==0.9.5, with Python 3.11")
    path = Path(package.origin).with_name("libspu.so")
    loader = importlib.machinery.ExtensionFileLoader(_NAME, str(path))
    spec = importlib.util.spec_from_file_location(_NAME, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = module
    loader.exec_module(module)
    return module


libspu: Any = _load()


def reason_of(error: RuntimeError) -> str:
    """Return the message of a libspu error, without its stack trace."""
    return (
        re.split(r"stacktrace:", str(error), flags=re.IGNORECASE)[0].removeprefix("what:").strip()
    )


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


def to_spu(share: Share, chunk_bytes: int = CHUNK_BYTES) -> Any:
    """Convert a share to the `libspu.Share` that a runtime takes.

    libspu copies chunks before it compares sizes: pass it only shares made or checked here.
    """
    meta = libspu.ValueMeta()
    meta.data_type = _DTYPES[share.dtype]
    meta.visibility = _visibility(share.storage)
    # Assigned as a whole: `meta.shape.dims = ...` would write to a default that all metas share.
    meta.shape = list(share.shape)
    meta.storage_type = share.storage.name
    content = np.ascontiguousarray(share.words).reshape(-1).view(np.uint8).data
    spu_share = libspu.Share()
    spu_share.meta = meta.SerializeToString()
    spu_share.share_chunks = [
        _chunk(len(content), start, bytes(content[start : start + chunk_bytes]))
        for start in range(0, len(content), chunk_bytes)
    ]
    return spu_share


def from_spu(rank: Rank, spu_share: Any) -> Share:
    """Convert and validate a `libspu.Share` of any origin; nothing in it is trusted."""
    meta = libspu.ValueMeta()
    if not meta.ParseFromString(spu_share.meta):
        raise ShareInvalid(f"the header of {len(spu_share.meta)} bytes is malformed")
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
    content = _content(spu_share.share_chunks, math.prod(words_shape) * storage.word.itemsize)
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
                f"chunk {number} declares a share of {chunk.total_bytes} bytes, the header says"
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
