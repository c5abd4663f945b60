"""Hypothesis strategies for tampered bytes."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from json_tokens import STRANGE_VALUES, TOKEN

_EDGES = (0, 1, 2**7, 2**8 - 1, 2**15, 2**16, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1)


def _flip_a_bit(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    at = draw(st.integers(0, len(data) - 1))
    return data[:at] + bytes([data[at] ^ 1 << draw(st.integers(0, 7))]) + data[at + 1 :]


def _cut(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    start, end = sorted(draw(st.integers(0, len(data))) for _ in range(2))
    return draw(st.sampled_from([data[:start], data[start:], data[:start] + data[end:]]))


def _insert(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    at = draw(st.integers(0, len(data)))
    return data[:at] + draw(st.binary(min_size=1, max_size=40)) + data[at:]


def _splice(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    other = draw(st.sampled_from(seeds))
    start, end = draw(st.integers(0, len(data))), draw(st.integers(0, len(other)))
    return data[:start] + other[end:]


def _change_a_number(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """Change a length or word: big-endian in our formats, little-endian in words."""
    size = draw(st.sampled_from([1, 2, 4, 8]))
    number = draw(st.sampled_from(_EDGES)) % 256**size
    at = draw(st.integers(0, len(data) - 1))
    order = draw(st.sampled_from(["big", "little"]))
    return data[:at] + number.to_bytes(size, order) + data[at + size :]


def _change_json(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    tokens = list(TOKEN.finditer(data))
    if not tokens:
        return data
    start, end = draw(st.sampled_from(tokens)).span()
    return data[:start] + draw(st.sampled_from(STRANGE_VALUES)) + data[end:]


_WAYS = (_flip_a_bit, _cut, _insert, _splice, _change_a_number, _change_json)


@st.composite
def tampered(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds after one to three changes."""
    data = draw(st.sampled_from(seeds))
    for way in draw(st.lists(st.sampled_from(_WAYS), min_size=1, max_size=3)):
        if data:
            data = way(draw, data, seeds)
    return data
