from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest
from eth_utils.crypto import keccak

from opfl_chain.chain.abi import CustomError, Panicked, Reverted, RevertedWithReason, encode
from opfl_chain.chain.bindings.events import EndpointAnnounced
from opfl_chain.chain.contracts.contract import Log, decode_event
from opfl_chain.chain.devnet import Anvil
from opfl_chain.chain.errors import BadArgument, UnexpectedData
from opfl_chain.chain.send.sender import TransactionSender


def test_committed_bindings_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "opfl_chain.chain.codegen", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_structs_enums_and_values_come_back_typed(
    anvil: Anvil, counter: Any, bindings: ModuleType
) -> None:
    reading = counter.read(7)
    assert reading == bindings.types.Reading(
        id=7,
        value=0,
        direction=bindings.types.Direction.DOWN,
        writers=(anvil.accounts[-1].address, counter.address),
    )
    assert counter.limit() == 1000


def test_views_answer_for_past_blocks(
    anvil: Anvil, counter: Any, sender: TransactionSender
) -> None:
    before = anvil.rpc.block_number()
    sender.send(counter.move(1, 5, b"", value=0), "move")
    assert counter.value() == 5
    assert counter.value(block=before) == 0
    assert counter.divide(2) == (2, 1)


def test_events_are_typed_and_found_by_topic(
    counter: Any, sender: TransactionSender, bindings: ModuleType
) -> None:
    receipt = sender.send(counter.move(3, 5, b"note", value=9), "move")
    event = bindings.events.Moved.in_receipt(receipt)
    assert event == bindings.events.Moved(by=sender.address, id=3, amount=5, note=b"note")
    assert decode_event(receipt.logs[0]) == event
    with pytest.raises(UnexpectedData, match=r"emitted no Cleared\(\)"):
        bindings.events.Cleared.in_receipt(receipt)
    with pytest.raises(UnexpectedData, match="is not a"):
        bindings.events.Cleared.decode(receipt.logs[0])


def test_an_event_that_no_binding_knows_is_an_error(counter: Any) -> None:
    log = Log(counter.address, (b"\x01" * 32,), b"", 1, "0x", "0x", 0)
    with pytest.raises(UnexpectedData, match="emitted an unknown event"):
        decode_event(log)


def test_text_on_chain_that_is_not_utf8_is_read_all_the_same() -> None:
    job, member = bytes(31) + b"\x07", bytes(12) + b"\x11" * 20
    topics = (keccak(text=EndpointAnnounced.SIGNATURE), job, member)
    event = decode_event(Log("0x", topics, encode(["bytes"], [b"h\xff"]), 1, "0x", "0x", 0))
    assert isinstance(event, EndpointAnnounced)
    assert (event.job, event.url) == (7, "h\\xff")


def test_a_custom_error_arrives_with_its_values_and_its_documentation(
    counter: Any, sender: TransactionSender, bindings: ModuleType
) -> None:
    with pytest.raises(bindings.errors.TooMuch) as caught:
        sender.send(counter.move(3, 2000, b"", value=0), "move")
    error = caught.value
    assert isinstance(error, CustomError)
    assert (error.id, error.amount, error.limit) == (3, 2000, 1000)
    assert str(error) == (
        "Counter.move(id=3, amount=2000, note=0x): TooMuch(id=3, amount=2000, limit=1000): "
        "The amount is above the limit. Move it in smaller steps."
    )


def test_reasons_and_panics_are_typed(counter: Any, sender: TransactionSender) -> None:
    with pytest.raises(RevertedWithReason, match="'nothing to clear'"):
        sender.send(counter.clear(), "clear")
    with pytest.raises(Panicked, match="division by zero"):
        counter.divide(0)


def test_a_view_reverts_typed(counter: Any) -> None:
    with pytest.raises(Reverted):
        counter.divide(0)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((-1, 0, b""), "id must be uint64"),
        ((2**64, 0, b""), "id must be uint64"),
        ((0, "5", b""), "amount must be uint256"),
        ((0, 0, 5), "note must be bytes"),
    ],
)
def test_arguments_that_do_not_fit_are_named(
    counter: Any, arguments: tuple[Any, ...], complaint: str
) -> None:
    with pytest.raises(BadArgument, match=complaint):
        counter.move(*arguments, value=0)


def test_an_address_without_the_contract_is_reported(anvil: Anvil, bindings: ModuleType) -> None:
    nobody = bindings.Counter(anvil.rpc, anvil.accounts[0].address)
    with pytest.raises(UnexpectedData, match="Is Counter deployed there"):
        nobody.value()
