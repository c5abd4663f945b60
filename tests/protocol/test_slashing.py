import pytest
from hypothesis import given
from hypothesis import strategies as st

from opfl_chain.protocol.economics import slash_amount, split_slash
from opfl_chain.protocol.errors import SlashError

amounts = st.integers(0, 2**96 - 1)
basis_points = st.integers(0, 10_000).flatmap(
    lambda burn: st.tuples(st.just(burn), st.integers(0, 10_000 - burn))
)
members = st.integers(1, 7)


@given(amounts, basis_points, members)
def test_split_conserves_the_amount(amount, bps, count):
    split = split_slash(amount, *bps, count)
    assert split.total == amount
    assert min(split.burn, split.treasury, split.each_member) >= 0


@given(amounts, basis_points, members)
def test_dust_is_less_than_one_wei_a_member(amount, bps, count):
    split = split_slash(amount, *bps, count)
    assert 0 <= split.burn - amount * bps[0] // 10_000 < count


@given(amounts, amounts)
def test_slash_never_exceeds_penalty_or_deposit(penalty, captured):
    amount = slash_amount(penalty, captured)
    assert amount in (penalty, captured)
    assert amount <= penalty and amount <= captured


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 0, 0, 3), "slashed amount -1"),
        ((1, 0, 0, 0), "a committee of 0 members"),
        ((1, 5_001, 5_000, 3), "burn 5001 and treasury 5000 basis points"),
        ((1, -1, 0, 3), "must not be negative"),
        ((1, 0, -1, 3), "must not be negative"),
    ],
)
def test_impossible_split_is_refused(arguments, message):
    with pytest.raises(SlashError, match=message):
        split_slash(*arguments)


def test_negative_penalty_is_refused():
    with pytest.raises(SlashError, match="penalty -1"):
        slash_amount(-1, 0)
