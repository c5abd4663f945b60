"""Development chains: start one, or attach to one that runs already."""

from __future__ import annotations

import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Literal, Self

from eth_account import Account
from eth_account.hdaccount import generate_mnemonic
from eth_account.signers.local import LocalAccount
from eth_account.types import Language

from opfl_chain.chain.child import Child
from opfl_chain.chain.errors import ChainMismatch, DevnetFailed
from opfl_chain.chain.rpc import Rpc

CHAIN_ID = 31337
ACCOUNTS = 16
BALANCE_ETHER = 10_000
Backend = Literal["anvil", "hardhat"]


class Devnet(ABC):
    """A chain whose blocks we can make. A context manager; leaving it ends what it started."""

    rpc: Rpc
    chain_id: int
    accounts: list[LocalAccount]
    """Funded accounts with their keys; none on a chain that we only attached to."""

    @property
    def rpc_url(self) -> str:
        return self.rpc.url

    @property
    def ws_url(self) -> str | None:
        """Where new heads are announced, if that is known."""
        return None

    @abstractmethod
    def mine(self, blocks: int = 1) -> None:
        """Add empty blocks (or what is in the pool) at once."""

    def reorg(self, depth: int) -> None:
        """Replace the last `depth` blocks by as many empty ones."""
        raise DevnetFailed(
            f"{type(self).__name__} cannot reorganise its chain. Use the anvil backend for that."
        )

    def close(self) -> None:
        self.rpc.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class StartedDevnet(Devnet):
    """A chain in a process of ours. Its accounts come from a phrase that no other chain has.

    Given a `log`, the chain also writes there what it is asked.
    """

    _logging_method: str

    def __init__(self, *, log: Path | None, accounts: int, mnemonic: str | None = None) -> None:
        self.chain_id = CHAIN_ID
        self.mnemonic = mnemonic or random_mnemonic()
        self.accounts = derive_accounts(self.mnemonic, accounts)
        self._scratch = Path(tempfile.mkdtemp(prefix="opfl-devnet-"))
        self.log = log or self._scratch / "devnet.log"
        self._chatty = log is not None
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        return self._started().pid

    @property
    def ws_url(self) -> str:
        return self.rpc_url.replace("http://", "ws://", 1)

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.alive

    def _started(self) -> Child:
        if self._child is None:
            raise DevnetFailed(f"{type(self).__name__} is not running: it never started or ended.")
        return self._child

    def _connect(self, child: Child, url: str, *, fresh: bool) -> None:
        """Attach to what was started, and make sure that it is what answers there."""
        self._child = child
        self.rpc = Rpc(url)
        try:
            self._verify(child, fresh=fresh)
        except BaseException:
            self.close()
            raise

    def _verify(self, child: Child, *, fresh: bool) -> None:
        started = time.time()
        found = [account.lower() for account in self.rpc.request("eth_accounts")]
        wanted = [account.address.lower() for account in self.accounts]
        if found != wanted or not child.alive:
            raise child.failure(
                f"does not answer at {self.rpc_url}: another chain does. End that process"
            )
        if (chain_id := self.rpc.chain_id()) != self.chain_id:
            raise child.failure(f"has chain id {chain_id} instead of {self.chain_id}")
        genesis = self.rpc.request("eth_getBlockByNumber", "0x0", False)
        if fresh and int(genesis["timestamp"], 16) < started - 60:
            raise child.failure("serves a chain that is older than the process")
        self.rpc.require_prague()
        if not self._chatty:  # every request is a line, which nobody will read
            self.rpc.request(self._logging_method, False)

    def close(self) -> None:
        if hasattr(self, "rpc"):
            self.rpc.close()
        if self._child is not None:
            self._child.close()
            self._child = None
        shutil.rmtree(self._scratch, ignore_errors=True)


class AttachedChain(Devnet):
    """A chain that somebody else runs."""

    def __init__(self, rpc_url: str, *, chain_id: int | None = None, ws_url: str | None = None):
        self.rpc = Rpc(rpc_url)
        self.accounts = []
        self._ws_url = ws_url
        try:
            self.chain_id = self.rpc.chain_id()
            if chain_id is not None and chain_id != self.chain_id:
                raise ChainMismatch(
                    f"chain id of {rpc_url}",
                    chain_id,
                    self.chain_id,
                    "Give the address of a node of the right chain.",
                )
            self.rpc.require_prague()
        except BaseException:
            self.rpc.close()
            raise

    @property
    def ws_url(self) -> str | None:
        return self._ws_url

    def mine(self, blocks: int = 1) -> None:
        raise DevnetFailed(
            f"{self.rpc_url} was attached to, not started: its blocks come when they come. "
            "Wait for them, or start a devnet."
        )


def attach(
    rpc_url: str, *, chain_id: int | None = None, ws_url: str | None = None
) -> AttachedChain:
    """Check that the node answers, is the right chain and runs Prague."""
    return AttachedChain(rpc_url, chain_id=chain_id, ws_url=ws_url)


def start_devnet(
    backend: Backend = "anvil",
    *,
    block_time: float | None = 1.0,
    port: int = 0,
    log: Path | None = None,
    accounts: int = ACCOUNTS,
) -> StartedDevnet:
    """Start a new chain in a process that ends with this one.

    A block comes with every transaction, and every `block_time` seconds besides (None: only with
    transactions). Port 0 is any free port.
    """
    from opfl_chain.chain.anvil import Anvil
    from opfl_chain.chain.hardhat import Hardhat

    kinds: dict[str, type[Anvil] | type[Hardhat]] = {"anvil": Anvil, "hardhat": Hardhat}
    if backend not in kinds:
        raise DevnetFailed(f"no backend {backend!r}. Choose one of: {', '.join(kinds)}.")
    return kinds[backend](block_time=block_time, port=port, log=log, accounts=accounts)


def random_mnemonic() -> str:
    return generate_mnemonic(num_words=12, lang=Language.ENGLISH)


def derive_accounts(mnemonic: str, count: int) -> list[LocalAccount]:
    Account.enable_unaudited_hdwallet_features()
    return [
        Account.from_mnemonic(mnemonic, account_path=f"m/44'/60'/0'/0/{index}")
        for index in range(count)
    ]
