"""What an optimizer remembers between rounds, and its one form in bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from opfl_chain.training.errors import StateInvalid

Elements = TypeVar("Elements")
"""A numpy array or a torch tensor: flat, float32."""

_HEADER = struct.Struct("<4sBBQQ")
_MAGIC, _VERSION = b"OPFO", 1


@dataclass(frozen=True)
class OptimizerState(Generic[Elements]):
    """How many updates were made, and the running averages, which the optimizer knows by place."""

    step: int
    averages: tuple[Elements, ...]


def state_to_bytes(state: OptimizerState[NDArray[np.float32]]) -> bytes:
    """`OPFO`, version, number of averages, step, length, then little-endian float32."""
    length = state.averages[0].size if state.averages else 0
    header = _HEADER.pack(_MAGIC, _VERSION, len(state.averages), state.step, length)
    return header + b"".join(average.astype("<f4").tobytes() for average in state.averages)


def state_from_bytes(data: bytes) -> OptimizerState[NDArray[np.float32]]:
    """Read what `state_to_bytes` wrote, and nothing else."""
    if len(data) < _HEADER.size:
        raise StateInvalid(f"a state has at least {_HEADER.size} bytes, these are {len(data)}")
    magic, version, count, step, length = _HEADER.unpack_from(data)
    if (magic, version) != (_MAGIC, _VERSION):
        raise StateInvalid(
            f"the state starts with {magic!r} and version {version},"
            f" this package reads {_MAGIC!r} and version {_VERSION}"
        )
    if len(data) != _HEADER.size + 4 * count * length:
        raise StateInvalid(
            f"a state of {count} averages of {length:,} numbers has"
            f" {_HEADER.size + 4 * count * length:,} bytes, these are {len(data):,}"
        )
    values = np.frombuffer(data, "<f4", offset=_HEADER.size).astype(np.float32)
    return OptimizerState(step, tuple(values.reshape(count, length).copy()) if count else ())
