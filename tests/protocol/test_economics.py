from math import isclose

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from opfl_chain.protocol.economics import BestResponse, Deterrence, trade_off
from opfl_chain.protocol.errors import EconomicsError

PAPER = Deterrence()


def test_columns_of_the_paper():
    rows = trade_off([0.10, 0.05, 0.01], PAPER)
    assert [f"{row.deposit:.2f}" for row in rows] == ["1.11", "1.12", "1.76"]
    assert [f"{row.deposit_ratio:.2f}" for row in rows] == ["1.00", "1.01", "1.59"]
    assert [f"{row.expected_gain:.2f}" for row in rows] == ["-0.10"] * 3
    assert [row.audit_rate for row in rows] == [0.10, 0.05, 0.01]


def test_ratio_is_to_the_lowest_deposit_whatever_the_order():
    ratios = {row.audit_rate: row.deposit_ratio for row in trade_off([0.01, 0.10], PAPER)}
    assert ratios[0.10] == 1
    assert f"{ratios[0.01]:.2f}" == "1.59"


@given(
    st.floats(0, 1),
    st.builds(
        Deterrence,
        skipped_rounds=st.integers(1, 10_000),
        false_rejection=st.floats(0, 0.5),
        margin=st.floats(0, 10),
    ),
)
def test_required_deposit_makes_deviation_lose_the_margin(rate, deterrence):
    assume(deterrence.detection_probability(rate) > deterrence.false_rejection + 1e-9)
    deposit = deterrence.required_deposit(rate)
    gain = deterrence.expected_gain(rate, deposit)
    assert isclose(gain, -deterrence.margin, rel_tol=1e-6, abs_tol=1e-6)


@given(st.floats(0.001, 1), st.floats(0.001, 1))
def test_more_audits_need_no_higher_deposit(a, b):
    low, high = sorted([a, b])
    assert PAPER.required_deposit(high) <= PAPER.required_deposit(low)


def test_detection_probability_at_the_ends():
    assert PAPER.detection_probability(0) == 0
    assert PAPER.detection_probability(1) == 1
    assert isclose(PAPER.detection_probability(1e-18), 1e-16)


def test_audit_rate_too_low_to_deter_is_refused_with_what_to_change():
    with pytest.raises(EconomicsError, match=r"no deposit deters at audit rate 0.0001") as error:
        PAPER.required_deposit(0.0001)
    assert "Raise the audit rate above 0.0001" in str(error.value)
    assert "lower the false-rejection probability" in str(error.value)
    assert PAPER.required_deposit(PAPER.lowest_audit_rate * 1.01) > 0


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_audit_rate_out_of_range_is_refused(rate):
    with pytest.raises(EconomicsError, match=r"must be in \[0, 1\]"):
        PAPER.required_deposit(rate)


def test_no_rates_are_refused():
    with pytest.raises(EconomicsError, match="at least one audit rate"):
        trade_off([], PAPER)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"skipped_rounds": 0}, "skipped rounds are 0"),
        ({"false_rejection": 1.0}, "false-rejection probability is 1.0"),
        ({"false_rejection": -0.1}, "false-rejection probability is -0.1"),
        ({"margin": -0.1}, "margin is -0.1"),
        ({"margin": float("nan")}, "margin is nan"),
    ],
)
def test_senseless_assumption_is_refused(parameters, message):
    with pytest.raises(EconomicsError, match=message):
        Deterrence(**parameters)


probabilities = st.floats(0.001, 1)
amounts = st.floats(0, 1_000)


@st.composite
def responses(draw: st.DrawFn) -> BestResponse:
    rejection = draw(st.floats(0, 0.4))
    return BestResponse(
        saved_cost=draw(st.floats(0.01, 1_000)),
        outside_gain=draw(amounts),
        pay=draw(amounts),
        honest_rejection=rejection,
        cheapest_penalty=draw(st.floats(rejection + 0.1, 1)),
        margin=draw(st.floats(0, 10)),
    )


@given(probabilities, responses())
def test_the_deposit_makes_the_best_response_lose_the_margin(rate, response):
    deposit = response.required_deposit(rate)
    lost = response.margin * (response.saved_cost + response.outside_gain)
    gain = response.expected_gain(rate, deposit)
    assert gain <= -lost * (1 - 1e-9) + 1e-6
    if deposit:  # and no lower one does
        assert isclose(gain, -lost, rel_tol=1e-6, abs_tol=1e-6)


@given(probabilities, responses())
def test_expected_gain_is_the_difference_of_two_strategies(rate, response):
    """Both are played: an honest client works and is seldom rejected, a cheat does neither."""
    deposit = 7.0
    q, pay = response.honest_rejection, response.pay
    honest = pay * (1 - rate * q) - rate * q * deposit - response.saved_cost
    lost = rate * response.cheapest_penalty * deposit
    cheat = pay * (1 - rate) + response.outside_gain - lost
    found = response.expected_gain(rate, deposit)
    assert isclose(found, cheat - honest, rel_tol=1e-6, abs_tol=1e-6)


def test_a_penalty_that_a_cheat_can_choose_after_the_seed_sets_the_deposit():
    full, half = BestResponse(), BestResponse(cheapest_penalty=0.5)
    assert isclose(half.required_deposit(0.1), 2 * full.required_deposit(0.1))
    assert half.expected_gain(0.1, full.required_deposit(0.1)) > 0  # the full one would not deter


def test_pay_alone_can_deter():
    assert BestResponse(pay=100).required_deposit(0.5) == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"saved_cost": -1}, "saved cost is -1"),
        ({"pay": float("inf")}, "pay is inf"),
        ({"margin": float("nan")}, "margin is nan"),
        ({"honest_rejection": 1}, "honest rejection is 1"),
        ({"cheapest_penalty": 0}, "cheapest penalty is 0"),
        ({"cheapest_penalty": 1.5}, "cheapest penalty is 1.5"),
    ],
)
def test_impossible_assumptions_of_a_best_response_are_refused(fields, message):
    with pytest.raises(EconomicsError, match=message):
        BestResponse(**fields)


def test_no_deposit_deters_if_honest_clients_lose_as_much():
    with pytest.raises(EconomicsError, match="no deposit deters"):
        BestResponse(honest_rejection=0.2, cheapest_penalty=0.2).required_deposit(0.5)
    with pytest.raises(EconomicsError, match="audit rate is 0"):
        BestResponse().required_deposit(0)
