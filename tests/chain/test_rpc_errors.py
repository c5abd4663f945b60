from __future__ import annotations

from typing import Any

import pytest
from chain_support import mined
from eth_account.signers.local import LocalAccount
from eth_utils.conversions import to_hex
from hypothesis import given
from hypothesis import strategies as st

from opfl_chain.chain.abi import Panicked, Reverted, RevertedWithReason, UnknownCustomError
from opfl_chain.chain.devnet import Anvil
from opfl_chain.chain.errors import (
    AlreadyKnown,
    ChainError,
    GasLimitWrong,
    InsufficientFunds,
    MethodMissing,
    NodeRefused,
    NonceTooHigh,
    NonceTooLow,
    RangeRefused,
    RpcUnavailable,
    Underpriced,
    WrongSigningChain,
)
from opfl_chain.chain.rpc import Rpc, from_node_error

GWEI = 10**9


def raw(account: LocalAccount, **changes: Any) -> str:
    fields = {
        "type": 2,
        "chainId": 31337,
        "nonce": 0,
        "gas": 21_000,
        "maxFeePerGas": 3 * GWEI,
        "maxPriorityFeePerGas": GWEI,
        "to": account.address,
        "value": 1,
    }
    return to_hex(account.sign_transaction({**fields, **changes}).raw_transaction)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"nonce": 0, "value": 2}, NonceTooLow, id="nonce"),
        pytest.param({"nonce": 1, "value": 10**25}, InsufficientFunds, id="funds"),
        pytest.param({"nonce": 1, "gas": 20_000}, GasLimitWrong, id="gas"),
        pytest.param({"nonce": 1, "chainId": 5}, WrongSigningChain, id="chain"),
        pytest.param(
            {"nonce": 1, "maxFeePerGas": 1, "maxPriorityFeePerGas": 1}, Underpriced, id="fee"
        ),
        pytest.param({"nonce": 9}, AlreadyKnown, id="known"),
        pytest.param({"nonce": 9, "value": 3}, Underpriced, id="replacement"),
    ],
)
def test_anvils_refusals_are_typed(
    anvil: Anvil, account: LocalAccount, changes: dict[str, Any], expected: type[ChainError]
) -> None:
    mined(anvil.rpc, anvil.rpc.request("eth_sendRawTransaction", raw(account)))
    anvil.rpc.request("eth_sendRawTransaction", raw(account, nonce=9))
    with pytest.raises(expected, match="eth_sendRawTransaction was refused"):
        anvil.rpc.request("eth_sendRawTransaction", raw(account, **changes))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Nonce too high. Expected nonce to be 1 but got 9.", NonceTooHigh),
        ("Nonce too low. Expected nonce to be 1 but got 0.", NonceTooLow),
        ("already known", AlreadyKnown),
        ("Known transaction: 0xabc", AlreadyKnown),
        ("replacement transaction underpriced", Underpriced),
        ("Transaction maxFeePerGas (1) is too low for the next block", Underpriced),
        ("max fee per gas less than block base fee: address 0x1", Underpriced),
        ("Sender doesn't have enough funds to send tx.", InsufficientFunds),
        ("insufficient funds for gas * price + value: balance 0", InsufficientFunds),
        ("Transaction requires at least 21000 gas but got 20000", GasLimitWrong),
        ("query returned more than 10000 results", RangeRefused),
        ("exceed maximum block range: 5000", RangeRefused),
        ("block range is too wide", RangeRefused),
        ("BlockOutOfRangeError: block height is 3 but requested was 8", RangeRefused),
        ("Log response size exceeded.", RangeRefused),
        ("Method nope is not supported", MethodMissing),
        ("the method debug_x does not exist/is not available", MethodMissing),
        ("something else", NodeRefused),
    ],
)
def test_other_nodes_wordings_are_typed(message: str, expected: type[ChainError]) -> None:
    error = from_node_error("eth_method", {"code": -32000, "message": message})
    assert type(error) is expected
    assert message in str(error)


ENCODED_REASON = (
    "08c379a0"
    "0000000000000000000000000000000000000000000000000000000000000020"
    "0000000000000000000000000000000000000000000000000000000000000002"
    "6e6f000000000000000000000000000000000000000000000000000000000000"
)


@pytest.mark.parametrize(
    ("data", "expected", "text"),
    [
        (f"0x{ENCODED_REASON}", RevertedWithReason, "'no'"),
        ({"message": "reverted", "data": f"0x{ENCODED_REASON}"}, RevertedWithReason, "'no'"),
        ("0x4e487b71" + "11".zfill(64), Panicked, "underflow"),
        ("0x4e487b71" + "ff".zfill(64), Panicked, "unknown code"),
        ("0x12345678aabb", UnknownCustomError, "0x12345678 and arguments 0xaabb"),
        ("0x08c379a0aabb", UnknownCustomError, "0x08c379a0"),
        ("0x", Reverted, "execution reverted"),
        (None, Reverted, "execution reverted"),
    ],
)
def test_revert_data_of_all_nodes_is_decoded(data: Any, expected: type, text: str) -> None:
    error = from_node_error("eth_call", {"code": 3, "message": "execution reverted", "data": data})
    assert type(error) is expected
    assert text in str(error)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "code": st.one_of(st.none(), st.integers(), st.floats(), st.text(), st.just([])),
            "message": st.text(),
            "data": st.one_of(st.none(), st.text(), st.binary().map(to_hex), st.integers()),
        },
    )
)
def test_every_error_of_a_node_becomes_a_chain_error(error: dict[str, Any]) -> None:
    assert isinstance(from_node_error("eth_call", error), ChainError)


def test_a_node_that_is_not_there_is_unavailable() -> None:
    with Rpc("http://127.0.0.1:1", retries=2, backoff=0.01) as rpc:
        with pytest.raises(RpcUnavailable, match=r"http://127\.0\.0\.1:1 does not answer"):
            rpc.chain_id()
        with pytest.raises(RpcUnavailable):
            rpc.batch([("eth_chainId", ())])


def test_a_batch_keeps_order_and_returns_failures_as_values(anvil: Anvil) -> None:
    calls = [("eth_getBlockByNumber", (hex(0), False)), ("nope", ()), ("eth_chainId", ())] * 150
    answers = anvil.rpc.batch(calls)
    assert len(answers) == 450
    assert all(answer["number"] == "0x0" for answer in answers[::3])
    assert all(isinstance(answer, MethodMissing) for answer in answers[1::3])
    assert set(answers[2::3]) == {hex(31337)}
    with pytest.raises(MethodMissing):
        anvil.rpc.batch_or_raise(calls)
    assert anvil.rpc.batch([]) == []


def test_web3_shares_the_connection(anvil: Anvil) -> None:
    assert anvil.rpc.web3().eth.chain_id == anvil.chain_id
