"""Helpers for the tests of the chain layer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from opfl_chain.chain.contracts.compiler import Artifact
from opfl_chain.chain.devnet import Devnet
from opfl_chain.chain.rpc import Rpc
from opfl_chain.chain.send.sender import TransactionSender

CRASHING = Path(__file__).with_name("chain_crashing.py")


def create_counter(
    chain: Devnet, bindings: ModuleType, artifact: Artifact, folder: Path, start: int = 0
) -> Any:
    """A new counter, created by the chain's last account so that the first has nonce 0."""
    with TransactionSender(chain.rpc, chain.accounts[-1], folder) as creator:
        creator.submit(bindings.Counter.creation(artifact.bytecode, start), "create")
        chain.mine()
        address = creator.wait("create").contract_address
    return bindings.Counter(chain.rpc, address)


def mined(rpc: Rpc, transaction: str) -> None:
    """Wait for a transaction's block, which a chain makes after it has taken the transaction."""
    while rpc.request("eth_getTransactionReceipt", transaction) is None:
        time.sleep(0.01)


def mine_while(chain: Devnet, work: Callable[[], Any], pause: float = 0.05) -> Any:
    """Mine until the work, which waits for blocks, is done."""
    results: list[Any] = []
    worker = threading.Thread(target=lambda: results.append(work()))
    worker.start()
    while worker.is_alive():
        chain.mine()
        time.sleep(pause)
    worker.join()
    return results[0]
