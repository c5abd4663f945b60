"""Penalties: whom they compensate, and where the rest goes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opfl_chain.protocol.economics import split_penalty
from opfl_chain.protocol.errors import PenaltyError

amounts = st.integers(0, 2**96 - 1)
shares = st.integers(0, 10_000)
recipients = st.integers(0, 3)


@given(amounts, recipients, amounts, shares)
def test_split_conserves_the_amount(amount, count, compensation, share):
    split = split_penalty(amount, count, compensation, share)
    assert split.total == amount
    assert min(split.burnt, split.treasury, *split.paid, 0) == 0


@given(amounts, recipients, amounts, shares)
def test_the_treasury_gets_nothing_before_all_are_compensated(amount, count, compensation, share):
    split = split_penalty(amount, count, compensation, share)
    assert len(split.paid) == count
    if split.treasury:
        assert set(split.paid) <= {compensation}


def test_a_share_of_all_burns_nothing():
    assert split_penalty(1_001, 0, 100, 10_000).burnt == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 2, 0, 0), "amount -1"),
        ((1, -1, 0, 0), "-1 recipients"),
        ((1, 2, -1, 0), "compensation -1"),
        ((1, 2, 0, 10_001), "10001 basis points"),
        ((1, 2, 0, -1), "-1 basis points"),
    ],
)
def test_impossible_split_is_refused(arguments, message):
    with pytest.raises(PenaltyError, match=message):
        split_penalty(*arguments)
