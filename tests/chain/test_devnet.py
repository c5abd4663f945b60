from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from chain_support import mined

from opfl_chain.chain import devnet as anvil_module
from opfl_chain.chain.devnet import CHAIN_ID, Anvil, attach, start_devnet
from opfl_chain.chain.errors import (
    ChainMismatch,
    DevnetFailed,
    MethodMissing,
    PragueMissing,
    RpcUnavailable,
)
from opfl_chain.chain.rpc import Rpc
from opfl_chain.system.child import Child


@pytest.fixture(autouse=True)
def _scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put leftovers of killed processes where pytest cleans up."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for_end(pid: int, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while is_running(pid):
        assert time.monotonic() < deadline, f"process {pid} still runs after {seconds} s"
        time.sleep(0.02)


def test_a_devnet_is_a_new_chain_with_funded_accounts_of_its_own() -> None:
    with start_devnet(accounts=3) as first, start_devnet(accounts=3) as second:
        assert first.rpc_url != second.rpc_url
        assert first.chain_id == first.rpc.chain_id() == CHAIN_ID
        assert first.accounts[0].address != second.accounts[0].address
        assert first.rpc.balance(first.accounts[2].address) == 10_000 * 10**18
        assert second.rpc.balance(first.accounts[0].address) == 0
        before = first.rpc.block_number()
        first.mine(5)
        assert first.rpc.block_number() >= before + 5


def test_leaving_the_block_ends_the_process() -> None:
    with start_devnet() as devnet:
        pid, scratch = devnet.pid, devnet.log.parent
        assert is_running(pid)
    assert not is_running(pid)
    assert not scratch.exists()
    devnet.close()  # twice is no problem
    with pytest.raises(DevnetFailed, match="not running"):
        _ = devnet.pid


def test_blocks_come_by_themselves_when_told_so() -> None:
    with Anvil(block_time=0.2, accounts=1) as devnet:
        while devnet.rpc.block_number() < 2:
            time.sleep(0.1)


START = """
import os, signal, sys, time, warnings
warnings.simplefilter("ignore")
# A shell starts jobs in the background with SIGINT ignored, also in their children.
signal.signal(signal.SIGINT, signal.default_int_handler)
from opfl_chain.chain.devnet import start_devnet
with start_devnet(accounts=1) as devnet:
    {extra}
    print(devnet.pid, flush=True)
    time.sleep(600)
"""


def start_in_process(extra: str = "pass") -> tuple[Any, ...]:
    """Start a devnet in a process; return the process, and the numbers that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-c", START.format(extra=extra)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, *map(int, process.stdout.readline().split())


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_devnet_ends_with_its_parent(signal_number: signal.Signals) -> None:
    process, pid = start_in_process()
    assert is_running(pid)
    process.send_signal(signal_number)
    process.wait()
    wait_for_end(pid)
    assert process.stdout is not None
    process.stdout.close()


def test_a_fork_of_the_parent_does_not_keep_the_devnet_alive() -> None:
    forking = "child = os.fork() or time.sleep(600); print(child, end=' ')"
    process, fork, pid = start_in_process(forking)
    process.kill()
    process.wait()
    try:
        wait_for_end(pid)
        assert is_running(fork)
    finally:
        os.kill(fork, signal.SIGKILL)
    assert process.stdout is not None
    process.stdout.close()


def test_a_devnet_outlives_the_thread_that_started_it() -> None:
    started: list[Anvil] = []
    thread = threading.Thread(target=lambda: started.append(Anvil(accounts=1)))
    thread.start()
    thread.join()
    time.sleep(0.5)
    with started[0] as devnet:
        assert devnet.rpc.chain_id() == CHAIN_ID


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to its parent")
def test_a_devnet_ends_with_its_watchdog() -> None:
    with start_devnet(accounts=1) as devnet:
        pid = devnet.pid
        status = Path(f"/proc/{pid}/status").read_text()
        watchdog = int(status.split("PPid:")[1].split()[0])
        os.kill(watchdog, signal.SIGKILL)
        wait_for_end(pid)


def test_a_taken_port_is_reported_with_the_log() -> None:
    with start_devnet(accounts=1) as devnet:
        port = int(devnet.rpc_url.rpartition(":")[2])
        with pytest.raises(DevnetFailed, match=r"(?s)ended with code.*in use"):
            start_devnet(port=port)


def test_a_missing_binary_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anvil_module.platform, "machine", lambda: "abacus")
    monkeypatch.setattr(anvil_module.shutil, "which", lambda name: None)
    with pytest.raises(DevnetFailed, match=r"anvil-\w+-abacus.*make setup"):
        start_devnet()


def test_a_chain_that_answers_in_its_place_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with start_devnet(accounts=1) as other:
        address = other.rpc_url.removeprefix("http://")
        genuine = Child.await_line
        monkeypatch.setattr(
            Child,
            "await_line",
            lambda self, pattern, seconds: (
                genuine(self, pattern, seconds) and address
                if "Listening" in pattern
                else genuine(self, pattern, seconds)
            ),
        )
        with pytest.raises(DevnetFailed, match="another chain does"):
            Anvil(accounts=1)


def test_attaching_checks_what_answers() -> None:
    with start_devnet(accounts=1) as devnet:
        with attach(devnet.rpc_url, chain_id=CHAIN_ID, ws_url=devnet.ws_url) as chain:
            assert chain.chain_id == CHAIN_ID
            assert chain.ws_url == devnet.ws_url
            with pytest.raises(DevnetFailed, match="not started"):
                chain.mine()
            with pytest.raises(DevnetFailed, match="anvil backend"):
                chain.reorg(1)
        with pytest.raises(ChainMismatch, match="expected 1, found 31337"):
            attach(devnet.rpc_url, chain_id=1)
        url = devnet.rpc_url
    with pytest.raises(RpcUnavailable, match="Is the node running"):
        attach(url)


def test_a_chain_before_prague_is_refused(tmp_path: Path) -> None:
    command = [anvil_module.binary(), "--port", "0", "--hardfork", "cancun"]
    child = Child(command, tmp_path / "log")
    url = "http://" + child.await_line(r"Listening on (127\.0\.0\.1:\d+)", 60)
    with pytest.raises(PragueMissing, match="EIP-2537"):
        attach(url)
    child.close()


def test_the_state_of_a_chain_can_be_kept(tmp_path: Path) -> None:
    state = tmp_path / "chain.json"
    with Anvil(accounts=2, block_time=None, state=state) as devnet:
        addresses = [account.address for account in devnet.accounts]
        devnet.mine(3)
        head = devnet.rpc.request("eth_getBlockByNumber", "0x3", False)["hash"]
    with Anvil(accounts=2, block_time=None, state=state) as devnet:
        assert [account.address for account in devnet.accounts] == addresses
        assert devnet.rpc.request("eth_getBlockByNumber", "0x3", False)["hash"] == head


def test_a_reorganisation_replaces_blocks(anvil: Anvil) -> None:
    anvil.mine(3)
    sender, receiver = (account.address for account in anvil.accounts[:2])
    mined(anvil.rpc, anvil.rpc.request("eth_sendTransaction", {"from": sender, "to": receiver}))
    before = anvil.rpc.request("eth_getBlockByNumber", "0x4", False)["hash"]
    anvil.reorg(1)
    assert anvil.rpc.request("eth_getBlockByNumber", "0x4", False)["hash"] != before
    assert anvil.rpc.block_number() == 4
    with Rpc(anvil.rpc_url) as rpc, pytest.raises(MethodMissing):
        rpc.request("hardhat_reorg")


def test_an_unknown_backend_is_named() -> None:
    with pytest.raises(DevnetFailed, match="anvil, hardhat"):
        start_devnet("ganache")  # type: ignore[arg-type]
