from fractions import Fraction

import protocol_vectors as vectors
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opfl_chain.protocol.documents import MAX_JSON_INTEGER
from opfl_chain.protocol.errors import DocumentError
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.paper import PaperBoundary, quanta_above, relative_factor, round_factor_down
from opfl_chain.rules.quantiles import need
from opfl_chain.rules.registry import boundary_from_json

POLICY = Policy.from_json(vectors.load("policy")["texts"][0].encode())
FIELDS = {
    "policy_hash": "0x" + "ab" * 32,
    "spu_version": "0.9.5",
    "coordinates": 10,
    "grid": [500, 980],
    "absolute": [3, 812],
    "relative": [1536, 15],
    "epsilon": 4,
    "infinity": 5000,
}

bounds = st.floats(min_value=0, max_value=1e6)


@st.composite
def boundaries(draw: st.DrawFn) -> PaperBoundary:
    grid = sorted(draw(st.sets(st.integers(1, 1000), min_size=1, max_size=25)))
    guard = draw(st.integers(0, MAX_JSON_INTEGER))
    naturals = st.integers(0, MAX_JSON_INTEGER)
    factors = st.floats(min_value=0, max_value=3).map(lambda b: relative_factor(b, guard))
    return PaperBoundary.from_mapping(
        FIELDS
        | {
            "coordinates": draw(st.integers(1, MAX_JSON_INTEGER)),
            "grid": grid,
            "absolute": draw(st.lists(naturals, min_size=len(grid), max_size=len(grid))),
            "relative": draw(st.lists(factors, min_size=len(grid), max_size=len(grid))),
            "epsilon": draw(naturals),
            "infinity": guard,
        }
    )


@given(boundaries())
def test_boundary_round_trips(boundary):
    assert boundary_from_json(boundary.canonical_json) == boundary
    assert PaperBoundary.from_json(boundary.canonical_json) == boundary


@given(st.integers(1, 1000), st.integers(1, 10**9))
def test_need_is_the_ceiling(p, count):
    exact = Fraction(p, 1000) * count
    assert need(p, count) - 1 < exact <= need(p, count)
    assert 1 <= need(p, count) <= count


@given(bounds, st.integers(0, 40))
def test_quanta_are_rounded_up(bound, bits):
    exact = Fraction(bound) * 2**bits
    assert 0 <= quanta_above("absolute", bound, 2**bits) - exact < 1


@given(st.integers(0, 2**62))
def test_factor_keeps_four_bits_and_an_eighth(factor):
    rounded = round_factor_down(factor)
    assert rounded == 0 or rounded // (rounded & -rounded) < 16
    assert rounded <= factor <= rounded + rounded // 8
    assert round_factor_down(rounded) == rounded


@given(st.floats(min_value=0, max_value=4), st.integers(0, MAX_JSON_INTEGER))
def test_factor_is_never_stricter_and_stays_inside_the_ring(bound, guard):
    factor = relative_factor(bound, guard)
    assert factor * guard < 2**62
    assert bound == 0 or factor <= max(2 / Fraction(bound) - 1, 0)


@given(
    st.lists(st.floats(0, 1e3), min_size=21, max_size=21),
    st.lists(st.floats(0, 3), min_size=21, max_size=21),
    st.floats(0, 1),
    st.floats(0, 1e6),
)
def test_boundary_of_real_bounds_is_well_formed(absolute, relative, epsilon, infinity):
    boundary = PaperBoundary.of_bounds(POLICY, 61706, absolute, relative, epsilon, infinity)
    assert boundary.policy_hash == "0x" + POLICY.hash.hex()
    assert boundary.spu_version == POLICY.spu.version
    assert boundary.grid == POLICY.quantile_grid
    assert boundary_from_json(boundary.canonical_json) == boundary


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rule": "guess"}, "rule is 'guess': input should be 'paper'"),
        ({"policy_hash": "0x12"}, "policy_hash is '0x12'"),
        ({"policy_hash": "0x" + "AB" * 32}, "policy_hash"),
        ({"coordinates": 0}, "coordinates is 0"),
        ({"grid": [980, 500]}, "quantiles must be strictly increasing"),
        ({"grid": [500]}, "absolute has 2 bounds for 1 quantiles"),
        ({"relative": [1]}, "relative has 1 bounds for 2 quantiles"),
        ({"relative": [17, 1]}, "factor 17 at p=0.5 has more than 4 significant bits"),
        ({"relative": [1, 2**50]}, r"factor 1125899906842624 at p=0.98 times.*below 2\^62"),
        ({"relative": [1, -1]}, "relative.1 is -1"),
        ({"absolute": [1, 2**53]}, "absolute.1 is 9007199254740992"),
        ({"absolute": [1, 2.0]}, "absolute.1 is 2.0: input should be a valid integer"),
        ({"epsilon": -1}, "epsilon is -1"),
        ({"extra": 1}, "extra is an unknown field"),
    ],
)
def test_malformed_boundary_is_refused(changes, message):
    with pytest.raises(DocumentError, match=message):
        PaperBoundary.from_mapping(FIELDS | changes)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "boundary: invalid JSON"),
        (b"\xff", "boundary: invalid JSON"),
        (b"[" * 10_000, "boundary: invalid JSON: recursion limit"),
        (b"[]", "boundary rule is None, known rules: paper"),
        (b"{}", "boundary rule is None, known rules: paper"),
        (b'{"rule":["paper"]}', r"boundary rule is \['paper'\]"),
        (b'{"rule":"scaled"}', "boundary rule is 'scaled', known rules: paper"),
        (b'{"rule":"paper"}', "PaperBoundary: policy_hash is missing"),
        (b'{"format": "opfl.boundary.v1"}', "boundary rule is None"),
    ],
)
def test_bytes_that_are_no_boundary_are_refused(data, message):
    with pytest.raises(DocumentError, match=message):
        boundary_from_json(data)


@pytest.mark.parametrize("bound", [float("nan"), float("inf"), -1.0])
def test_bound_that_is_no_bound_is_refused(bound):
    with pytest.raises(DocumentError, match=f"absolute bound is {bound}"):
        quanta_above("absolute", bound, 1)
    with pytest.raises(DocumentError, match=f"relative bound is {bound}"):
        relative_factor(bound, 1)
