"""The integer verdict against exact fractions, and the real-valued profile against the verdict."""

from fractions import Fraction

import numpy as np
import protocol_vectors as vectors
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opfl_chain.protocol.errors import EncodingError, ProfileError
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.paper import (
    PaperBoundary,
    ProfileReport,
    Threshold,
    check_replay,
    magnitudes,
    real_profile,
    round_factor_down,
)
from opfl_chain.rules.quantiles import need, quantiles

MAX = 2**53 - 1
POLICY = Policy.from_json(vectors.load("policy")["texts"][0].encode())
GRID = POLICY.quantile_grid


def boundary_of(coordinates: int, grid: list[int], **fields: object) -> PaperBoundary:
    return PaperBoundary.from_mapping(
        {
            "policy_hash": "0x" + "00" * 32,
            "spu_version": "0.9.5",
            "coordinates": coordinates,
            "grid": grid,
            "absolute": [MAX] * len(grid),
            "relative": [0] * len(grid),
            "epsilon": 0,
            "infinity": MAX,
            **fields,
        }
    )


small = st.integers(-40, 40)
any_word = st.one_of(
    small, st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), 2**63 - 1, 2**62])
)


@st.composite
def steps(draw: st.DrawFn, elements=small) -> tuple[np.ndarray, np.ndarray]:
    count = draw(st.integers(1, 30))
    arrays = hnp.arrays(np.int64, count, elements=elements)
    return draw(arrays), draw(arrays)


grids = st.sets(st.integers(1, 1000), min_size=1, max_size=4).map(sorted)


def signed(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


@given(steps(any_word), grids, st.data())
def test_report_counts_exactly(step, grid, data):
    g, m = step
    quanta = st.one_of(st.integers(0, 80), st.integers(0, MAX))
    factors = st.one_of(st.integers(0, 100), st.integers(0, 512)).map(round_factor_down)
    boundary = boundary_of(
        g.size,
        grid,
        absolute=[data.draw(quanta) for _ in grid],
        relative=[data.draw(factors) for _ in grid],
        epsilon=data.draw(quanta),
        infinity=data.draw(quanta),
    )
    report = check_replay(boundary, g, m)
    pairs = list(zip(g.tolist(), m.tolist(), strict=True))
    distances = [abs(signed(a - b)) for a, b in pairs]
    allowances = [abs(signed(a + b)) + 2 * boundary.epsilon for a, b in pairs]
    assert [t.count for t in report.absolute] == [
        sum(d <= bound for d in distances) for bound in boundary.absolute
    ]
    assert [t.count for t in report.relative] == [
        sum(c * d <= v for d, v in zip(distances, allowances, strict=True))
        for c in boundary.relative
    ]
    assert report.beyond == sum(d > boundary.infinity for d in distances)
    assert report.largest == max(distances)
    enough = all(t.count >= need(t.p, g.size) for t in (*report.absolute, *report.relative))
    assert report.passed == (enough and report.beyond == 0)
    assert report.passed == (list(report.failures()) == [])


@given(steps(), grids, st.data())
def test_absolute_test_is_the_quantile_test(step, grid, data):
    g, m = step
    bounds = [data.draw(st.integers(0, 80)) for _ in grid]
    report = check_replay(boundary_of(g.size, grid, absolute=bounds), g, m)
    within = quantiles(np.abs(g - m), grid) <= bounds
    assert [t.passed for t in report.absolute] == within.tolist()


@given(steps(), grids, st.data())
def test_relative_test_is_the_quantile_test_of_exact_fractions(step, grid, data):
    g, m = step
    factors = [round_factor_down(data.draw(st.integers(0, 100))) for _ in grid]
    epsilon = data.draw(st.integers(1, 5))
    report = check_replay(boundary_of(g.size, grid, relative=factors, epsilon=epsilon), g, m)
    ratios = sorted(
        Fraction(abs(a - b), max(abs(a), abs(b)) + epsilon)
        for a, b in zip(g.tolist(), m.tolist(), strict=True)
    )
    within = [
        ratios[need(p, g.size) - 1] <= Fraction(2, c + 1)
        for p, c in zip(grid, factors, strict=True)
    ]
    assert [t.passed for t in report.relative] == within


@given(steps(), grids, st.data())
def test_real_profile_agrees_with_the_verdict(step, grid, data):
    g, m = step
    quantum = POLICY.fixed_point.quantum
    bounds = [data.draw(st.integers(0, 80)) for _ in grid]
    factors = [data.draw(st.sampled_from([0, 1, 3, 7, 15])) for _ in grid]  # 2 / (c + 1) is exact
    boundary = boundary_of(g.size, grid, absolute=bounds, relative=factors, epsilon=2)
    report = check_replay(boundary, g, m)
    real = real_profile(g * quantum, m * quantum, grid, 2 * quantum)
    assert [t.passed for t in report.absolute] == (
        real.absolute <= np.array(bounds) * quantum
    ).tolist()
    assert [t.passed for t in report.relative] == (
        real.relative <= 2 / (np.array(factors) + 1)
    ).tolist()
    assert real.infinity == report.largest * quantum


@given(steps(st.integers(-(2**45), 2**45)), st.integers(1, 100))
def test_step_is_inside_the_boundary_that_was_calibrated_on_it(step, epsilon):
    g, m = step
    quantum = POLICY.fixed_point.quantum
    real = real_profile(g * quantum, m * quantum, GRID, epsilon * quantum)
    boundary = PaperBoundary.of_bounds(
        POLICY, g.size, real.absolute, real.relative, epsilon * quantum, real.infinity
    )
    report = check_replay(boundary, g, m)
    assert report.passed, str(report)


@given(steps(), st.integers(1, 1000), st.data())
def test_one_quantum_decides(step, p, data):
    g, m = step
    tie = int(quantiles(np.abs(g - m), [p])[0])
    assert check_replay(boundary_of(g.size, [p], absolute=[tie]), g, m).passed
    assume(tie > 0)
    assert not check_replay(boundary_of(g.size, [p], absolute=[tie - 1]), g, m).passed
    largest = int(np.abs(g - m).max())
    assert check_replay(boundary_of(g.size, [p], infinity=largest), g, m).passed
    assert not check_replay(boundary_of(g.size, [p], infinity=largest - 1), g, m).passed


@given(hnp.arrays(np.float64, st.integers(1, 50), elements=st.floats(-5, 5)), grids)
def test_quantiles_are_the_inverted_distribution_function(values, grid):
    for p, quantile in zip(grid, quantiles(values, grid), strict=True):
        assert quantile in values
        assert np.count_nonzero(values <= quantile) >= Fraction(p, 1000) * values.size
        assert np.count_nonzero(values < quantile) < Fraction(p, 1000) * values.size


@given(hnp.arrays(np.float64, 64, elements=st.floats(-5, 5)))
def test_quantiles_agree_with_numpy(values):
    exact = [125, 250, 500, 750, 875, 1000]  # p * 64 / 1000 is a whole number
    expected = np.quantile(values, np.array(exact) / 1000, method="inverted_cdf")
    assert np.array_equal(quantiles(values, exact), expected)


def test_magnitude_of_the_lowest_word_is_2_to_the_63():
    words = np.array([-(2**63), 2**63 - 1, -1, 0, 1])
    assert magnitudes(words.view(np.uint64)).tolist() == [2**63, 2**63 - 1, 1, 0, 1]


def test_lowest_word_does_not_slip_through_the_guard():
    report = check_replay(boundary_of(1, [1000]), np.array([-(2**63)]), np.array([0]))
    assert not report.passed
    assert report.largest == 2**63


def report_of(count: int, beyond: int = 0) -> ProfileReport:
    return ProfileReport(
        absolute=(Threshold("absolute", 980, 812, count, 60_472),),
        relative=(Threshold("relative", 500, 1535, 30_000, 30_853),),
        infinity=1200,
        beyond=beyond,
        largest=5000,
    )


def test_report_names_the_first_failing_threshold():
    assert str(report_of(60_100)) == (
        "outside the boundary: absolute p=0.98: 60,100 of 60,472 coordinates within 812 quanta"
    )
    assert str(report_of(60_472)) == (
        "outside the boundary:"
        " relative p=0.5: 30,000 of 30,853 coordinates within 0.0013 of their size"
    )
    assert str(report_of(60_100, beyond=3)) == (
        "outside the boundary: infinity: 3 coordinates beyond 1,200 quanta, the farthest at 5,000"
    )
    assert report_of(60_100).absolute[0].margin == -372
    assert len(list(report_of(60_100, beyond=3).failures())) == 3


def test_report_of_a_pass_says_what_is_to_spare():
    words = np.arange(10)
    report = check_replay(boundary_of(10, [500, 900], infinity=7), words, words + 2)
    assert str(report) == (
        "inside the boundary: 1 coordinates to spare at the closest threshold,"
        " the largest discrepancy is 2 of 7 quanta"
    )


TEN = np.arange(10)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: check_replay(boundary_of(10, [500]), TEN[:9], TEN),
            ProfileError,
            "gradient has 9 coordinates, the boundary is for 10",
        ),
        (
            lambda: check_replay(boundary_of(10, [500]), TEN, TEN[:9]),
            ProfileError,
            "replay has 9 coordinates",
        ),
        (
            lambda: check_replay(boundary_of(10, [500]), TEN, TEN * 1.0),
            EncodingError,
            "replay has dtype float64",
        ),
        (lambda: quantiles(TEN[:0], [500]), ProfileError, r"shape \(0,\)"),
        (lambda: quantiles(TEN, [0]), ProfileError, r"from 1 to 1000, got \[0\]"),
        (lambda: quantiles(np.array([0, np.nan]), [1]), ProfileError, "value 1 is nan"),
        (lambda: real_profile(TEN[:9], TEN, [500], 1.0), ProfileError, r"shape \(9,\), its replay"),
        (lambda: real_profile(TEN, TEN, [500], 0.0), ProfileError, "epsilon is 0.0"),
    ],
)
def test_gradients_that_cannot_be_compared_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
