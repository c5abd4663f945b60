from fractions import Fraction
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol_vectors import addresses, words

from opfl_chain.protocol.errors import SamplingError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.randomness import (
    AUDIT_ALWAYS,
    audit_rate_of,
    audit_ticket,
    is_audited,
    probability_of,
)

rates = st.integers(0, AUDIT_ALWAYS)


@given(words, addresses)
def test_rate_is_an_exact_threshold_of_the_ticket(seed, client):
    ticket = audit_ticket(seed, client)
    assert not is_audited(seed, client, ticket)
    assert is_audited(seed, client, ticket + 1)


@given(words, addresses)
def test_extreme_rates_audit_nobody_and_everybody(seed, client):
    assert not is_audited(seed, client, 0)
    assert is_audited(seed, client, AUDIT_ALWAYS)


@given(rates)
def test_rate_and_probability_round_trip(rate):
    assert audit_rate_of(probability_of(rate)) == rate


@given(st.floats(0, 1))
def test_rate_is_within_half_a_step_of_the_probability(probability):
    error = probability_of(audit_rate_of(probability)) - Fraction(probability)
    assert abs(error) <= Fraction(1, 2 * AUDIT_ALWAYS)


@pytest.mark.parametrize("probability", [0.01, 0.1, 0.5, 0.9])
def test_frequency_is_close_to_the_probability(probability):
    draws = 4_000
    rate = audit_rate_of(probability)
    client = "0x" + "5c" * 20
    hits = sum(is_audited(keccak256(i.to_bytes(4, "big")), client, rate) for i in range(draws))
    deviation = sqrt(draws * probability * (1 - probability))
    assert abs(hits - draws * probability) < 4 * deviation


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan"), float("inf")])
def test_probability_out_of_range_is_refused(probability):
    with pytest.raises(SamplingError, match=r"must be in \[0, 1\]"):
        audit_rate_of(probability)


@pytest.mark.parametrize("rate", [-1, AUDIT_ALWAYS + 1])
def test_rate_out_of_range_is_refused(rate):
    with pytest.raises(SamplingError, match=f"audit rate is {rate}"):
        is_audited(bytes(32), "0x" + "00" * 20, rate)
    with pytest.raises(SamplingError, match=f"audit rate is {rate}"):
        probability_of(rate)
