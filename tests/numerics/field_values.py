"""Integers that test the edges of the field, and elements drawn from them."""

import math

from hypothesis import strategies as st

from opfl_chain.numerics.field import MODULUS, Elements

EDGES = [
    0,
    1,
    2,
    2**43 - 1,
    2**63,
    2**64 - 1,
    2**64,
    2**64 + 1,
    2**126 - 1,
    2**126,
    2**127 - 2**64,
    MODULUS - 2**64,
    MODULUS - 2,
    MODULUS - 1,
]
values = st.sampled_from(EDGES) | st.integers(0, MODULUS - 1)
lists = st.lists(values, max_size=20)
pairs = st.lists(st.tuples(values, values), min_size=1, max_size=20)


def signed(value: int) -> int:
    return value - MODULUS if value > MODULUS // 2 else value


def elements_of(draw: st.DrawFn, *shape: int) -> Elements:
    """Draw elements of a shape."""
    size = math.prod(shape)
    return Elements.of_python(draw(st.lists(values, min_size=size, max_size=size))).reshape(*shape)
