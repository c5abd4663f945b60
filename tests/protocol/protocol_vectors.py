"""Reading tests/vectors/*.json, and strategies for the values of the protocol."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

ROOT = Path(__file__).resolve().parents[2]
ADDRESSES = {
    "beacon",
    "clients",
    "jobs",
    "members",
    "roundsContract",
    "standbys",
    "verifyingContract",
}
"""The keys of addresses, which stay strings."""


def load(name: str) -> dict[str, Any]:
    """Read one file of vectors, with byte strings as bytes."""
    return _decode(json.loads((ROOT / "tests" / "vectors" / f"{name}.json").read_text()))


def _decode(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("0x"):
        return bytes.fromhex(value[2:])
    if isinstance(value, dict):
        return {key: item if key in ADDRESSES else _decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_decode(item) for item in value]
    return value


def columns(vector: dict[str, Any], *names: str) -> list[tuple[Any, ...]]:
    """Return the rows of parallel arrays."""
    return list(zip(*(vector[name] for name in names), strict=True))


words = st.binary(min_size=32, max_size=32)
addresses = st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())
jobs = st.integers(1, 2**64 - 1)
rounds = st.integers(0, 2**32 - 1)
ring_arrays = hnp.arrays(np.int64, st.integers(1, 150), elements=st.integers(-(2**63), 2**63 - 1))
