from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from chain_support import CRASHING, create_counter, mine_while
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.conversions import to_hex

from opfl_chain.chain.contracts.compiler import Artifact
from opfl_chain.chain.contracts.contract import Call
from opfl_chain.chain.devnet import Anvil
from opfl_chain.chain.errors import (
    ChainMismatch,
    FeeTooHigh,
    InsufficientFunds,
    KeyReused,
    NonceTaken,
    ReceiptTimeout,
    SenderLocked,
    UnknownIntent,
)
from opfl_chain.chain.rpc import Rpc
from opfl_chain.chain.send.sender import TransactionSender
from opfl_chain.chain.send.store import FeePolicy


def move(counter: Any, amount: int = 1) -> Call:
    call: Call = counter.move(1, amount, b"", value=0)
    return call


def test_a_key_is_executed_once_however_often_it_is_sent(
    counter: Any, sender: TransactionSender
) -> None:
    first = sender.send(move(counter), "move")
    assert sender.send(move(counter), "move") == first
    assert counter.value() == 1
    sender.send(move(counter), "move again")
    assert counter.value() == 2
    assert sender.pending() == []


def test_a_key_stands_for_one_call(counter: Any, sender: TransactionSender) -> None:
    sender.send(move(counter, 1), "move")
    with pytest.raises(KeyReused, match=r"amount=1.*amount=2"):
        sender.send(move(counter, 2), "move")
    with pytest.raises(UnknownIntent):
        sender.wait("never submitted")


def test_a_refused_call_leaves_nothing_behind(
    counter: Any, sender: TransactionSender, bindings: ModuleType
) -> None:
    with pytest.raises(bindings.errors.TooMuch):
        sender.send(move(counter, 5000), "move")
    assert sender.nonce_of("move") is None
    assert sender.next_nonce() == 0
    sender.send(move(counter, 5), "move")


def test_a_call_that_reverts_when_mined_raises_the_contracts_error(
    counter: Any, sender: TransactionSender, bindings: ModuleType
) -> None:
    sender.send(counter.close(), "close")
    with pytest.raises(bindings.errors.Closed, match=r"Counter\.move.*0x"):
        sender.send(move(counter).with_gas(100_000), "move")  # own gas: not estimated first
    assert sender.next_nonce() == 2
    assert sender.pending() == []
    with pytest.raises(bindings.errors.Closed):
        sender.wait("move")


def test_unaffordable_call_is_refused_before_it_is_stored(
    anvil: Anvil, sender: TransactionSender
) -> None:
    call = Call(anvil.accounts[1].address, b"", "a large gift", value=10**30)
    with pytest.raises(InsufficientFunds, match="short of"):
        sender.send(call, "gift")
    assert sender.nonce_of("gift") is None


def test_fees_above_the_limit_are_not_offered(anvil: Anvil, counter: Any, tmp_path: Path) -> None:
    policy = FeePolicy(limit=1)
    with (
        TransactionSender(anvil.rpc, anvil.accounts[0], tmp_path, fees=policy) as sender,
        pytest.raises(FeeTooHigh, match="limit is 1"),
    ):
        sender.send(move(counter), "move")


def test_many_calls_go_out_in_one_batch(counter: Any, sender: TransactionSender) -> None:
    receipts = sender.send_many({f"move {i}": move(counter) for i in range(300)})
    assert len({receipt.transaction_hash for receipt in receipts.values()}) == 300
    assert counter.value() == 300
    assert sender.next_nonce() == 300


def test_threads_share_a_sender(counter: Any, sender: TransactionSender) -> None:
    threads = [
        threading.Thread(target=sender.send, args=(move(counter), f"move {i % 8}"))
        for i in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value() == 8
    assert sender.next_nonce() == 8


def test_a_second_sender_of_a_key_is_refused(
    anvil: Anvil, account: LocalAccount, sender: TransactionSender, tmp_path: Path
) -> None:
    with pytest.raises(SenderLocked, match=f"another sender for {account.address}"):
        TransactionSender(anvil.rpc, account, tmp_path)
    TransactionSender(anvil.rpc, anvil.accounts[1], tmp_path).close()  # another key is no problem
    sender.close()
    TransactionSender(anvil.rpc, account, tmp_path).close()


def test_a_second_process_with_the_same_key_is_refused(
    anvil: Anvil, account: LocalAccount, counter: Any, sender: TransactionSender, tmp_path: Path
) -> None:
    arguments = [anvil.rpc_url, "never", account.key.hex(), tmp_path, counter.address, "1"]
    refused = subprocess.run(
        [sys.executable, CRASHING, "sender", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert "SenderLocked: another sender for" in refused.stderr
    assert counter.value() == 0


def test_a_store_of_another_chain_is_refused(tmp_path: Path) -> None:
    account = Account.create()
    for attempt in range(2):
        with Anvil(accounts=1, block_time=None) as chain:
            # Genesis blocks differ only in their time, which is in seconds.
            chain.rpc.request("evm_mine")
            if attempt == 0:
                TransactionSender(chain.rpc, account, tmp_path).close()
                time.sleep(1.1)
            else:
                with pytest.raises(ChainMismatch, match="fresh folder"):
                    TransactionSender(chain.rpc, account, tmp_path)


@pytest.fixture
def slow(
    manual: Anvil, bindings: ModuleType, counter_artifact: Artifact, tmp_path: Path
) -> tuple[Anvil, Any, Callable[..., TransactionSender]]:
    """A chain that mines on demand, a counter on it, and a factory of senders."""
    counter = create_counter(manual, bindings, counter_artifact, tmp_path)

    def make(**options: Any) -> TransactionSender:
        return TransactionSender(manual.rpc, manual.accounts[0], tmp_path, **options)

    return manual, counter, make


Slow = tuple[Anvil, Any, Callable[..., TransactionSender]]


def test_a_receipt_that_does_not_come_is_a_timeout_and_can_be_waited_for_again(slow: Slow) -> None:
    chain, counter, make = slow
    with make(deadline=0.3) as sender:
        with pytest.raises(ReceiptTimeout, match=r"after 0\.3 s.*0x.*same key"):
            sender.send(move(counter), "move")
        assert sender.pending() == ["move"]
        chain.mine()
        sender.wait("move")
    assert counter.value() == 1


def test_a_transaction_that_is_too_cheap_is_replaced_at_a_higher_fee(slow: Slow) -> None:
    chain, counter, make = slow
    with make(resend_after=0.2, deadline=120) as sender:
        sender.submit(move(counter), "move")
        # The base fee rises above what was offered.
        chain.rpc.request("anvil_setNextBlockBaseFeePerGas", hex(50 * 10**9))
        chain.mine()
        assert counter.value() == 0
        receipt = mine_while(chain, lambda: sender.wait("move"))
        assert receipt.gas_price > 3 * 10**9
        assert sender.next_nonce() == 1
    assert counter.value() == 1


def test_a_transaction_that_the_pool_forgot_is_sent_again(slow: Slow) -> None:
    chain, counter, make = slow
    with make(deadline=120) as sender:
        sender.submit(move(counter), "move")
        chain.rpc.request("anvil_dropAllTransactions")
        chain.mine()
        assert counter.value() == 0
        mine_while(chain, lambda: sender.wait("move"))
    assert counter.value() == 1


def test_a_nonce_that_a_stranger_took_is_detected(slow: Slow) -> None:
    chain, counter, make = slow
    account = chain.accounts[0]
    with make(deadline=120, resend_after=0.5) as sender:
        sender.submit(move(counter), "move")
        chain.rpc.request("anvil_dropAllTransactions")
        stranger = account.sign_transaction(
            {
                "type": 2,
                "chainId": chain.chain_id,
                "nonce": 0,
                "gas": 21_000,
                "maxFeePerGas": 10**11,
                "maxPriorityFeePerGas": 10**9,
                "to": account.address,
                "value": 1,
            }
        )
        chain.rpc.request("eth_sendRawTransaction", to_hex(stranger.raw_transaction))
        chain.mine()
        with pytest.raises(NonceTaken, match=r"nonce 0 .* does not know"):
            sender.wait("move")
        with pytest.raises(NonceTaken):
            sender.send(move(counter), "move")
        sender.submit(move(counter), "move after all")
        chain.mine()
        sender.wait("move after all")
    assert counter.value() == 1


def test_confirmations_are_waited_for(slow: Slow) -> None:
    chain, counter, make = slow
    with make(confirmations=2, deadline=0.3) as sender:
        sender.submit(move(counter), "move")
        for _ in range(2):
            chain.mine()
            with pytest.raises(ReceiptTimeout):
                sender.wait("move")
        chain.mine()
        sender.wait("move")


def test_a_reorganisation_that_drops_a_receipt_is_survived(slow: Slow) -> None:
    chain, counter, make = slow
    with make(confirmations=2, deadline=120) as sender:
        sender.submit(move(counter), "move")
        chain.mine()
        assert counter.value() == 1
        chain.reorg(1)
        assert counter.value() == 0
        mine_while(chain, lambda: sender.wait("move"))
        assert counter.value() == 1


def test_intents_that_were_done_and_are_undone_by_a_reorganisation_are_done_again(
    slow: Slow,
) -> None:
    chain, counter, make = slow
    with make(deadline=120) as sender:
        for i in range(3):
            sender.submit(move(counter), f"move {i}")
            chain.mine()
            sender.wait(f"move {i}")
        chain.reorg(3)
        assert counter.value() == 0
        sender.submit(move(counter, 10), "later")  # its nonce is behind those that vanished
        mine_while(chain, lambda: sender.wait("later"))
        assert counter.value() == 13
        assert sender.next_nonce() == 4


def test_a_node_that_is_away_for_a_while_is_waited_for(slow: Slow, tmp_path: Path) -> None:
    chain, counter, _ = slow
    with (
        Rpc(chain.rpc_url, timeout=2, retries=1) as impatient,
        TransactionSender(impatient, chain.accounts[0], tmp_path, deadline=120) as sender,
    ):
        sender.submit(move(counter), "move")
        os.kill(chain.pid, signal.SIGSTOP)
        waiter = threading.Thread(target=sender.wait, args=("move",))
        waiter.start()
        time.sleep(3)
        os.kill(chain.pid, signal.SIGCONT)
        chain.mine()
        waiter.join()
    assert counter.value() == 1


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("before eth_estimateGas", id="before anything is stored"),
        pytest.param("before eth_sendRawTransaction", id="stored and not sent"),
        pytest.param("after eth_sendRawTransaction", id="sent and not known to be"),
        pytest.param("before eth_getTransactionReceipt", id="before the receipt"),
        pytest.param("after eth_getTransactionReceipt", id="after the receipt"),
    ],
)
def test_a_sender_that_is_killed_and_restarted_sends_everything_once(
    anvil: Anvil, counter: Any, tmp_path: Path, point: str
) -> None:
    account = anvil.accounts[0]
    arguments = [anvil.rpc_url, point, account.key.hex(), tmp_path, counter.address, "1,20,300"]
    killed = subprocess.run([sys.executable, CRASHING, "sender", *arguments], check=False)
    assert killed.returncode == -signal.SIGKILL
    with TransactionSender(anvil.rpc, account, tmp_path) as sender:
        left = sender.pending()
        assert (len(left) == 3) == (point != "before eth_estimateGas")
        sender.send_many({f"move {amount}": move(counter, amount) for amount in (1, 20, 300)})
        assert sender.pending() == []
        assert sender.next_nonce() == 3
    assert counter.value() == 321


def test_a_restarted_sender_can_finish_without_being_told_what(
    anvil: Anvil, counter: Any, tmp_path: Path
) -> None:
    account = anvil.accounts[0]
    point = "before eth_sendRawTransaction"
    arguments = [anvil.rpc_url, point, account.key.hex(), tmp_path, counter.address, "1,2"]
    killed = subprocess.run([sys.executable, CRASHING, "sender", *arguments], check=False)
    assert killed.returncode == -signal.SIGKILL
    with TransactionSender(anvil.rpc, account, tmp_path) as sender:
        assert list(sender.resume()) == ["move 1", "move 2"]
        assert sender.resume() == {}
    assert counter.value() == 3


@pytest.mark.parametrize("seed", range(4))
def test_every_intent_is_executed_once_through_chaos(slow: Slow, seed: int) -> None:
    """Reorganisations, dropped pools, restarts and idle blocks in random order."""
    chain, counter, make = slow
    chain.mine(5)  # reorganisations must not reach the counter's own creation
    dice = random.Random(seed)
    amounts = [2**i for i in range(10)]
    sender = make(deadline=30)
    for amount in amounts:
        sender.submit(move(counter, amount), f"move {amount}")
        for _ in range(dice.randrange(3)):
            match dice.randrange(4):
                case 0:
                    chain.mine(dice.randrange(1, 3))
                case 1:
                    chain.rpc.request("anvil_dropAllTransactions")
                case 2:
                    chain.reorg(dice.randrange(1, 5))
                case 3:
                    sender.close()
                    sender = make(deadline=30)
    calls = {f"move {amount}": move(counter, amount) for amount in amounts}
    mine_while(chain, lambda: sender.send_many(calls))
    assert sender.next_nonce() == len(amounts)
    sender.close()
    assert counter.value() == sum(amounts)
