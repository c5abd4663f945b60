"""Both rules on constructed observations, with expectations worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from constructed import GUIDED, PAPER, halves, observation
from hypothesis import given
from hypothesis import strategies as st

from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.evidence import Observation, Replayed
from opfl_chain.rules.guided_rule import GuidedRule, observed_excess
from opfl_chain.rules.paper_rule import PaperRule
from opfl_chain.rules.registry import rule_for, rule_of
from opfl_chain.rules.rule import NothingToCalibrate


def calibrated(policy: Policy, observations: list[Observation], alpha: float) -> Boundary:
    return rule_for(policy).calibrate(policy, observations, alpha)


def causes_of_rejection(boundary: Boundary, observed: Observation) -> list[str]:
    return rule_of(boundary).causes(boundary, observed)


def test_the_papers_bounds_are_the_largest_quantiles_enlarged() -> None:
    near = observation(PAPER, (500, 0), (400, 4), (100, 8))
    boundary = PaperRule(epsilon=0.5).calibrate(PAPER, [near], alpha=3)
    bounds = dict(zip(boundary.grid, boundary.absolute, strict=True))
    assert {p for p, bound in bounds.items() if bound == 0} == {20, *range(50, 501, 50)}
    assert {p for p, bound in bounds.items() if bound == 12} == set(range(550, 901, 50))
    assert (bounds[950], bounds[980]) == (24, 24)
    assert boundary.infinity == 24
    assert boundary.epsilon == PAPER.fixed_point.words_per_unit // 2


def test_the_papers_relative_bound_becomes_a_factor_of_four_bits() -> None:
    # max(|G|, |M|) + epsilon is 1, so that a discrepancy of 4 words is 4 * 2^-28 = 2^-26 of it.
    near = observation(PAPER, (500, 0), (400, 4), (100, 8))
    boundary = PaperRule(epsilon=0.5).calibrate(PAPER, [near], alpha=3)
    factors = dict(zip(boundary.grid, boundary.relative, strict=True))
    assert factors[900] == 10 << 22  # of 2 / (3 * 2^-26) - 1 = 44,739,241
    assert factors[950] == 10 << 21
    assert factors[500] == 15 << 49  # the largest integer of JSON, for a bound of 0


def test_every_quantile_has_the_bound_of_its_own_worst_step() -> None:
    wide = observation(PAPER, (500, 0), (500, 5))
    high = observation(PAPER, (960, 0), (40, 40))
    boundary = PaperRule().calibrate(PAPER, [wide, high], alpha=2)
    bounds = dict(zip(boundary.grid, boundary.absolute, strict=True))
    assert (bounds[500], bounds[900], bounds[980], boundary.infinity) == (0, 10, 80, 80)


def test_guided_bounds_are_excess_in_units_of_the_step() -> None:
    # |G + M| is 2^50 almost everywhere, of 51 bits, so that a unit is 2^25.
    # Off by 2^38: the allowance is 2^37 - 2^25, the excess 2^37 + 2^25, which is 2^12 + 1 units.
    # Off by 2^39: the allowance is 2^37 - 2^26, the excess 3 * 2^37 + 2^26.
    step = observation(GUIDED, (980, 0), (15, 1 << 38), (5, 1 << 39))
    assert observed_excess(step).unit == 25
    boundary = GuidedRule().calibrate(GUIDED, [step], alpha=2)
    bounds = dict(zip(boundary.grid, boundary.bounds, strict=True))
    assert bounds[980] == 2 * 16  # no bound is below 16 units before the safety factor
    assert bounds[990] == 2 * ((1 << 12) + 1)
    assert bounds[999] == boundary.infinity == 2 * ((3 << 12) + 2)


def test_a_replay_that_is_not_lifted_has_coarser_units() -> None:
    lifted = observation(GUIDED, (1000, 1 << 20))
    flat = observation(GUIDED, (1000, 0), lift=0)
    assert (lifted.replay.headroom, flat.replay.headroom) == (0, 22)
    assert np.array_equal(flat.replay.words, flat.gradient)


def test_tolerances_come_from_the_largest_deviation_and_have_a_floor() -> None:
    def tolerances(**deviations: int) -> tuple[int, int]:
        steps = [observation(GUIDED, (1000, 0)), observation(GUIDED, (1000, 0), **deviations)]
        boundary = GuidedRule().calibrate(GUIDED, steps, alpha=2)
        return boundary.mask_tolerance, boundary.ceiling_tolerance

    assert tolerances(activation_error=200, over_ceiling=10) == (400, 256)
    assert tolerances(activation_error=10, over_ceiling=300) == (64, 600)
    assert tolerances(activation_error=30) == (64, 256)


@pytest.mark.parametrize(
    ("policy", "inside", "outside", "causes"),
    [
        (PAPER, [(500, 0), (500, 4)], [(480, 0), (520, 4)], {"absolute", "relative"}),
        (PAPER, [(999, 1 << 20), (1, 1 << 21)], [(999, 0), (1, 1 << 23)], {"infinity"}),
        (GUIDED, [(980, 0), (20, 1 << 39)], [(970, 0), (30, 1 << 39)], {"quantile"}),
        (GUIDED, [(999, 0), (1, 1 << 38)], [(999, 0), (1, 1 << 40)], {"infinity"}),
    ],
)
def test_a_rejected_replay_names_its_causes(
    policy: Policy,
    inside: list[tuple[int, int]],
    outside: list[tuple[int, int]],
    causes: set[str],
) -> None:
    boundary = calibrated(policy, [observation(policy, *inside)], 1.5)
    assert causes_of_rejection(boundary, observation(policy, *inside)) == []
    assert set(causes_of_rejection(boundary, observation(policy, *outside))) == causes


@pytest.mark.parametrize(("deviation", "most"), [("wrong_side", 64), ("over_ceiling", 256)])
def test_a_replay_off_its_advice_is_rejected_for_it(deviation: str, most: int) -> None:
    boundary = calibrated(GUIDED, [observation(GUIDED, (1000, 0))], 1)
    for error, causes in ((most, []), (most + 1, ["advice"])):
        step = observation(GUIDED, (1000, 0), **{deviation: error})
        assert causes_of_rejection(boundary, step) == causes


@pytest.mark.parametrize("policy", [GUIDED, PAPER])
@given(seed=st.integers(0, 2**32), count=st.integers(1, 300), alpha=st.floats(1, 10))
def test_every_calibration_step_is_inside_its_own_boundary(
    policy: Policy, seed: int, count: int, alpha: float
) -> None:
    rng = np.random.default_rng(seed)
    observations = []
    for _ in range(3):
        size = 10.0 ** rng.uniform(-6, 0)
        gradient = (rng.standard_normal(count) * size).astype(np.float32)
        gradient[rng.random(count) < 0.3] = 0
        lift = int(rng.integers(0, policy.largest_lift + 1))
        words = policy.fixed_point.encode_array("gradient", gradient)
        words = words >> (policy.largest_lift - lift)
        noise = rng.integers(-20, 21, count) + words // int(rng.integers(50, 100_000))
        replayed = Replayed(words + noise, lift, *rng.integers(0, 999, 3).tolist())
        observations.append(Observation.of(policy, gradient, replayed))
    boundary = calibrated(policy, observations, alpha)
    for each in observations:
        # The mask tolerance covers deviations from the advice, which the activation error bounds.
        if each.replay.wrong_side <= each.replay.activation_error:
            assert causes_of_rejection(boundary, each) == []


@pytest.mark.parametrize("policy", [GUIDED, PAPER])
def test_calibration_without_steps_is_refused(policy: Policy) -> None:
    with pytest.raises(NothingToCalibrate, match="no honest steps were given"):
        calibrated(policy, [], 3)


def test_the_gradient_of_a_step_is_what_a_client_commits_to() -> None:
    step = observation(PAPER, (1000, 0))
    assert step.gradient.tolist() == PAPER.fixed_point.encode_array("g", halves()).tolist()
