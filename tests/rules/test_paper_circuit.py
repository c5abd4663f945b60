"""The verdict inside MPC is that of the numpy reference, on both sides of every threshold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from three_members import compute, held, ring_components

from opfl_chain.protocol.policy import PAPER_GRID
from opfl_chain.rules.paper import PaperBoundary, check_replay, quantiles, round_factor_down
from opfl_chain.rules.paper_circuit import profile_faults

GRID = list(PAPER_GRID)


def boundary_of(coordinates, absolute, relative, epsilon, infinity):
    return PaperBoundary.from_mapping(
        {
            "policy_hash": "0x" + "00" * 32,
            "spu_version": "0.9.5",
            "coordinates": coordinates,
            "grid": GRID,
            "absolute": [int(bound) for bound in absolute],
            "relative": [int(factor) for factor in relative],
            "epsilon": epsilon,
            "infinity": int(infinity),
        }
    )


def verdict_in_mpc(boundary, gradient, replay, seed=0):
    rng = np.random.default_rng(seed)
    g, m = ring_components(gradient, rng), ring_components(replay, rng)

    def member(circuit):
        faults = profile_faults(circuit, boundary, held(g, circuit.rank), held(m, circuit.rank))
        return circuit.open(faults)

    return not compute(member).any()


def tight(gradient, replay, epsilon):
    """The strictest boundary that this pair is inside of."""
    distance = np.abs(gradient - replay)
    allowance = np.abs(gradient + replay) + 2 * epsilon
    largest = np.where(distance > 0, allowance // np.maximum(distance, 1), 2**20)
    ranks = -quantiles(-np.minimum(largest, 2**20), GRID)
    relative = [round_factor_down(int(factor)) for factor in ranks]
    return boundary_of(gradient.size, quantiles(distance, GRID), relative, epsilon, distance.max())


@pytest.fixture(scope="module")
def step():
    rng = np.random.default_rng(3)
    gradient = rng.normal(0, 1e6, 150).astype(np.int64)
    return gradient, gradient + rng.normal(0, 200, 150).astype(np.int64)


def test_tight_boundary_accepts(step):
    boundary = tight(*step, 100)
    assert check_replay(boundary, *step).passed
    assert verdict_in_mpc(boundary, *step)


@pytest.mark.parametrize("position", range(len(GRID)))
def test_absolute_threshold_decides_by_one_quantum(step, position):
    boundary = tight(*step, 100)
    bounds = list(boundary.absolute)
    bounds[position] -= 1
    stricter = boundary_of(150, bounds, boundary.relative, 100, boundary.infinity)
    assert not check_replay(stricter, *step).passed
    assert not verdict_in_mpc(stricter, *step)


@pytest.mark.parametrize("position", range(len(GRID)))
def test_relative_threshold_decides_by_one_step(step, position):
    boundary = tight(*step, 100)
    factors = list(boundary.relative)
    top = factors[position].bit_length()
    factors[position] += 1 << max(top - 4, 0)
    stricter = boundary_of(150, boundary.absolute, factors, 100, boundary.infinity)
    assert verdict_in_mpc(stricter, *step) == check_replay(stricter, *step).passed


@pytest.mark.parametrize("distance", [0, 1, 2**10, 2**40, 2**62, 2**63 - 1, -(2**63)])
def test_guard_decides_by_one_quantum(step, distance):
    gradient, _ = step
    bounds = [2**40] * len(GRID)
    replay = gradient.copy()
    with np.errstate(over="ignore"):
        replay[77] = (gradient[77:78].view(np.uint64) - np.uint64(distance % 2**64)).view(np.int64)[
            0
        ]
    for infinity in {min(abs(distance), 2**50), max(0, min(abs(distance), 2**50) - 1)}:
        boundary = boundary_of(150, bounds, [0] * len(GRID), 0, infinity)
        expected = check_replay(boundary, gradient, replay).passed
        assert expected == (abs(distance) <= infinity)
        assert verdict_in_mpc(boundary, gradient, replay) == expected


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 140), st.floats(0, 9), st.floats(-6, 0))
def test_random_steps_near_the_boundary(seed, count, size, noise):
    rng = np.random.default_rng(seed)
    gradient = rng.normal(0, 10**size, count).astype(np.int64)
    replay = gradient + rng.normal(0, max(1, 10 ** (size + noise)), count).astype(np.int64)
    boundary = tight(gradient, replay, int(rng.integers(0, 1000)))
    moved = [max(0, bound - int(rng.random() < 0.03)) for bound in boundary.absolute]
    near = boundary_of(count, moved, boundary.relative, boundary.epsilon, boundary.infinity)
    assert (
        verdict_in_mpc(near, gradient, replay, seed) == check_replay(near, gradient, replay).passed
    )
