"""The boundary test of a guided replay against the reference, on both sides of every bound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from three_members import compute, held, ring_components

from opfl_chain.rules.guided import GuidedBoundary, Measure, check_guided_replay, excess_of
from opfl_chain.rules.guided_circuit import scaled_faults


def boundary_of(count, **fields):
    return GuidedBoundary.from_mapping(
        {
            "policy_hash": "0x" + "00" * 32,
            "spu_version": "0.9.5",
            "coordinates": count,
            "grid": [100, 500, 900],
            "allowance_shift": 13,
            "scale_quantile": 900,
            "resolution_bits": 26,
            "bounds": [1, 3, 8],
            "infinity": 20,
            "mask_tolerance": 0,
            "ceiling_tolerance": 0,
            **fields,
        }
    )


def verdict(boundary, gradient, replay, headroom):
    rng = np.random.default_rng(5)
    ladder = np.array([-1 if headroom is None else (1 << headroom) - 1], np.int64)
    shares = [ring_components(words, rng) for words in (gradient, replay, ladder)]

    def member(circuit):
        parts = [held(components, circuit.rank) for components in shares]
        return circuit.open(scaled_faults(circuit, boundary, *parts))

    return not compute(member).any()


def assert_agrees(boundary, gradient, replay, headroom):
    expected = check_guided_replay(boundary, gradient, replay, headroom).passed
    assert verdict(boundary, gradient, replay, headroom) is expected
    return expected


def step(count, bits, noise, seed=0):
    rng = np.random.default_rng(seed)
    gradient = (rng.normal(0, 1, count) * 2.0**bits).astype(np.int64)
    return gradient, gradient + (rng.normal(0, 1, count) * noise).astype(np.int64)


@pytest.mark.parametrize("bits", [5, 20, 40, 55])
@pytest.mark.parametrize("headroom", [0, 7, 22])
def test_agrees_at_every_scale(bits, headroom):
    verdicts = set()
    for exponent in range(-4, 21, 4):
        noise = 2.0 ** (max(bits - 26, headroom) + exponent)
        verdicts.add(assert_agrees(boundary_of(200), *step(200, bits, noise), headroom))
    assert verdicts == {True, False}


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("off", [0, 1])
def test_both_sides_of_every_bound(place, off):
    """As many coordinates as a quantile needs at its bound, or one quantum beyond it."""
    boundary = boundary_of(1000, allowance_shift=62)
    gradient = np.full(1000, 3 << 39)
    unit = excess_of(boundary, gradient, gradient, 0).unit
    needed, bound = boundary.grid[place], boundary.bounds[place]  # of a thousand coordinates
    distances = np.full(1000, boundary.infinity << unit)
    distances[:needed] = 0
    distances[needed - 1] = ((bound + 1) << unit) - 1 + off
    others_wide = [bound if i == place else boundary.infinity for i in range(3)]
    chosen = boundary_of(1000, allowance_shift=62, bounds=others_wide)
    assert assert_agrees(chosen, gradient, gradient - distances, 0) is (off == 0)


@pytest.mark.parametrize("off", [0, 1])
def test_both_sides_of_the_guard(off):
    boundary = boundary_of(300, allowance_shift=62)
    gradient = np.full(300, 3 << 39)
    unit = excess_of(boundary, gradient, gradient, 0).unit
    replay = gradient.copy()
    replay[17] -= ((boundary.infinity + 1) << unit) - 1 + off
    assert assert_agrees(boundary, gradient, replay, 0) is (off == 0)


@pytest.mark.parametrize("off", [0, 1])
def test_both_sides_of_the_allowance(off):
    boundary = boundary_of(300, bounds=[0, 0, 0], infinity=0, resolution_bits=62)
    gradient = np.full(300, 3 << 39)
    replay = gradient - int(2 * gradient[0] >> 13)
    while gradient[0] - replay[0] > (gradient[0] + replay[0]) >> 13:
        replay += 1
    assert assert_agrees(boundary, gradient, replay - 2 * off, 0) is (off == 0)


@pytest.mark.parametrize("place", [0, 199])
@pytest.mark.parametrize("change", [1, -(2**63), 2**62, 2**45])
def test_far_away_coordinate_fails(place, change):
    gradient, replay = step(200, 40, 0)
    changed = gradient.copy()
    changed[place] += change
    assert assert_agrees(boundary_of(200), changed, replay, 0) is (change == 1)


def test_zero_gradient_is_measured_by_the_headroom():
    zero = np.zeros(100, np.int64)
    noise = np.full(100, 1 << 10)
    assert assert_agrees(boundary_of(100), zero, noise, 10)
    assert not assert_agrees(boundary_of(100), zero, noise << 5, 10)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=70),
    st.data(),
    st.none() | st.integers(0, 32),
)
def test_agrees_on_anything(values, data, headroom):
    count = len(values)
    gradient = np.array(values, np.int64)
    noise = data.draw(
        st.lists(
            st.integers(-(2**63), 2**63 - 1) | st.integers(-64, 64), min_size=count, max_size=count
        )
    )
    with np.errstate(over="ignore"):
        replay = gradient + np.array(noise, np.int64)
    boundary = boundary_of(
        count,
        allowance_shift=data.draw(st.integers(1, 62)),
        scale_quantile=data.draw(st.integers(1, 1000)),
        resolution_bits=data.draw(st.integers(0, 62)),
        bounds=data.draw(st.tuples(*[st.integers(0, 2**32 - 1)] * 3)),
        infinity=data.draw(st.integers(0, 2**32 - 1)),
    )
    assert_agrees(boundary, gradient, replay, headroom)


def test_measure_has_the_fields_of_a_boundary():
    gradient, replay = step(500, 40, 2.0**16)
    measure = Measure(allowance_shift=13, scale_quantile=900, resolution_bits=26)
    of_measure, of_boundary = (
        excess_of(rule, gradient, replay, 3) for rule in (measure, boundary_of(500))
    )
    assert of_measure.unit == of_boundary.unit
    assert np.array_equal(of_measure.units, of_boundary.units)
