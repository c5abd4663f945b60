"""Development chains: start one, or attach to a running one."""

from __future__ import annotations

import platform
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Literal

from eth_account import Account
from eth_account.hdaccount import generate_mnemonic
from eth_account.signers.local import LocalAccount
from eth_account.types import Language

from opfl_chain.chain.contracts.compiler import build_folder, checkout_root
from opfl_chain.chain.errors import ChainMismatch, DevnetFailed
from opfl_chain.chain.rpc import Rpc
from opfl_chain.protocol.economics import ETHER
from opfl_chain.system.child import Child
from opfl_chain.system.closing import Closing
from opfl_chain.system.files import write_atomically

CHAIN_ID = 31337
ACCOUNTS = 16
BALANCE_ETHER = 10_000
Backend = Literal["anvil", "hardhat"]
Mining = Literal["transactions", "manual"]
VIRTUAL_PERIOD = 1
"""Seconds between the timestamps of two blocks that are made by hand."""
_ANVIL_START_SECONDS = 120.0
_STATES = 500
"""Number of recent blocks whose states can be queried."""
_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_HARDHAT_START_SECONDS = 120.0


class Devnet(Closing, ABC):
    """A development chain. As a context manager it stops what it started on exit."""

    rpc: Rpc
    chain_id: int
    accounts: list[LocalAccount]
    """Funded accounts with their keys; empty for an attached chain."""

    @property
    def rpc_url(self) -> str:
        return self.rpc.url

    @property
    def ws_url(self) -> str | None:
        """The websocket that announces new heads, if known."""
        return None

    @abstractmethod
    def mine(self, blocks: int = 1) -> None:
        """Mine blocks at once, empty or with the pool's transactions."""

    def has_pending(self) -> bool:
        """Return whether a transaction waits for a block."""
        count = self.rpc.request("eth_getBlockTransactionCountByNumber", "pending")
        return int(count, 16) > 0

    def reorg(self, depth: int) -> None:
        """Replace the last `depth` blocks by as many empty ones."""
        raise DevnetFailed(
            f"{type(self).__name__} cannot reorganise its chain. Use the anvil backend for that."
        )

    def close(self) -> None:
        self.rpc.close()


class StartedDevnet(Devnet):
    """A chain in a child process. Its accounts come from a mnemonic unique to the chain.

    With `log` the chain also logs its requests to that file.
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
            raise DevnetFailed(f"{type(self).__name__} is not running: not started, or ended.")
        return self._child

    def _connect(self, child: Child, url: str, *, fresh: bool) -> None:
        """Attach to the started process, and check that it is the one that answers at `url`."""
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
                f"does not answer at {self.rpc_url}: another chain does. Stop that process"
            )
        if (chain_id := self.rpc.chain_id()) != self.chain_id:
            raise child.failure(f"has chain id {chain_id} instead of {self.chain_id}")
        genesis = self.rpc.request("eth_getBlockByNumber", "0x0", False)
        if fresh and int(genesis["timestamp"], 16) < started - 60:
            raise child.failure("serves a chain that is older than the process")
        self.rpc.require_prague()
        if not self._chatty:  # nobody reads one line per request
            self.rpc.request(self._logging_method, False)

    def close(self) -> None:
        if hasattr(self, "rpc"):
            self.rpc.close()
        if self._child is not None:
            self._child.close()
            self._child = None
        shutil.rmtree(self._scratch, ignore_errors=True)


class AttachedChain(Devnet):
    """A chain run by somebody else."""

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
            f"cannot mine on {self.rpc_url}: it was attached, not started by us. "
            "Wait for its blocks, or start a devnet."
        )


def attach(
    rpc_url: str, *, chain_id: int | None = None, ws_url: str | None = None
) -> AttachedChain:
    """Attach to a node after checking its chain id and that it runs Prague."""
    return AttachedChain(rpc_url, chain_id=chain_id, ws_url=ws_url)


def start_devnet(
    backend: Backend = "anvil",
    *,
    block_time: float | None = 1.0,
    mining: Mining = "transactions",
    port: int = 0,
    log: Path | None = None,
    accounts: int = ACCOUNTS,
) -> StartedDevnet:
    """Start a new chain in a process that ends with this one.

    It mines a block for every transaction, and one every `block_time` seconds (None: only for
    transactions); with `mining="manual"` only on `mine`. Port 0 picks a free port.
    """

    kinds: dict[str, type[Anvil] | type[Hardhat]] = {"anvil": Anvil, "hardhat": Hardhat}
    if backend not in kinds:
        raise DevnetFailed(f"unknown backend {backend!r}. Choose one of: {', '.join(kinds)}.")
    return kinds[backend](
        block_time=block_time, mining=mining, port=port, log=log, accounts=accounts
    )


def random_mnemonic() -> str:
    return generate_mnemonic(num_words=12, lang=Language.ENGLISH)


def derive_accounts(mnemonic: str, count: int) -> list[LocalAccount]:
    Account.enable_unaudited_hdwallet_features()
    return [
        Account.from_mnemonic(mnemonic, account_path=f"m/44'/60'/0'/0/{index}")
        for index in range(count)
    ]


class Anvil(StartedDevnet):
    """An Anvil process on its own port.

    `mining="manual"` makes blocks only on `mine`, a fixed virtual time apart. With `state` the
    chain is saved to that file on close and resumed from it the next time.
    """

    _logging_method = "anvil_setLoggingEnabled"

    def __init__(
        self,
        *,
        block_time: float | None = 1.0,
        mining: Mining = "transactions",
        port: int = 0,
        log: Path | None = None,
        accounts: int = ACCOUNTS,
        state: Path | None = None,
    ) -> None:
        server = binary()
        phrase = state.with_suffix(".phrase") if state else None
        resumed = bool(state and phrase and state.exists() and phrase.exists())
        super().__init__(
            log=log, accounts=accounts, mnemonic=phrase.read_text() if resumed and phrase else None
        )
        if phrase and not resumed:
            write_atomically(phrase, self.mnemonic, mode=0o600)
        command: list[str | Path] = [server, "--port", str(port), "--host", "127.0.0.1"]
        command += ["--chain-id", str(self.chain_id), "--hardfork", "prague"]
        command += ["--mnemonic", self.mnemonic, "--accounts", str(accounts)]
        command += ["--balance", str(BALANCE_ETHER), "--no-request-size-limit"]
        command += ["--prune-history", str(_STATES)]
        # Anvil writes older states to disk, gigabytes an hour: by default to the home folder, and
        # never deletes them.
        command += ["--cache-path", self._scratch / "states"]
        if mining == "manual":
            command += ["--no-mining"]
        elif block_time is not None:
            # Mining on transactions alone sometimes stalls when many arrive at once.
            command += ["--mixed-mining", "--block-time", f"{block_time:g}"]
        if state:
            command += ["--state", state]
        child = Child(command, self.log, failure=DevnetFailed)
        address = child.await_line(r"Listening on (127\.0\.0\.1:\d+)", _ANVIL_START_SECONDS)
        self._connect(child, f"http://{address}", fresh=not resumed)
        if mining == "manual":
            self.rpc.request("anvil_setBlockTimestampInterval", VIRTUAL_PERIOD)

    def mine(self, blocks: int = 1) -> None:
        self.rpc.request("anvil_mine", hex(blocks))

    def reorg(self, depth: int) -> None:
        self.rpc.request("anvil_reorg", depth, [])


def binary() -> Path:
    """Return the path of the server; npm's launcher would orphan the server when killed."""
    architecture = _ARCHITECTURES.get(platform.machine().lower(), platform.machine())
    package = f"anvil-{platform.system().lower()}-{architecture}"
    path = checkout_root() / "node_modules" / "@foundry-rs" / package / "bin" / "anvil"
    if path.is_file():
        return path
    installed = shutil.which("anvil")
    if installed is None:
        raise DevnetFailed(
            f"anvil not found, neither at {path} nor on the PATH. Run `make setup`, or install "
            "Foundry if npm has no package for your platform."
        )
    return Path(installed)


class Hardhat(StartedDevnet):
    """A Hardhat node on its own port, run by the Node.js 22 installed beside it."""

    _logging_method = "hardhat_setLoggingEnabled"

    def __init__(
        self,
        *,
        block_time: float | None = 1.0,
        mining: Mining = "transactions",
        port: int = 0,
        log: Path | None = None,
        accounts: int = ACCOUNTS,
    ) -> None:
        node, cli = installed()
        super().__init__(log=log, accounts=accounts)
        self._manual = mining == "manual"
        build_folder("hardhat")
        child = Child(
            [node, cli, "node", "--hostname", "127.0.0.1", "--port", str(port)],
            self.log,
            cwd=_folder(),
            env={
                "HARDHAT_DISABLE_TELEMETRY_PROMPT": "true",
                "OPFL_MNEMONIC": self.mnemonic,
                "OPFL_ACCOUNTS": str(accounts),
                "OPFL_BALANCE_WEI": str(BALANCE_ETHER * ETHER),
                "OPFL_CHAIN_ID": str(self.chain_id),
                "OPFL_BLOCK_TIME_MS": str(0 if self._manual else round((block_time or 0) * 1000)),
            },
            failure=DevnetFailed,
        )
        url = child.await_line(
            r"JSON-RPC server at (http://127\.0\.0\.1:\d+)", _HARDHAT_START_SECONDS
        )
        self._connect(child, url, fresh=True)
        if self._manual:
            self.rpc.request("evm_setAutomine", False)

    def mine(self, blocks: int = 1) -> None:
        # `hardhat_mine` makes blocks whose parent hash is not the hash of the previous block.
        times: list[tuple[int, ...]] = [()] * blocks
        if self._manual:
            last = int(self.rpc.request("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
            times = [(last + VIRTUAL_PERIOD * number,) for number in range(1, blocks + 1)]
        self.rpc.batch_or_raise([("evm_mine", each) for each in times])


def installed() -> tuple[Path, Path]:
    """Return the paths (node, hardhat). Raises with instructions if they are missing."""
    modules = _folder() / "node_modules"
    nodes = sorted(modules.glob("node-*/bin/node"))
    cli = modules / "hardhat" / "dist" / "src" / "cli.js"
    if not nodes or not cli.is_file():
        raise DevnetFailed(
            f"Hardhat and the Node.js 22 that it needs are not installed in {_folder()}. "
            "Run `make hardhat`."
        )
    return nodes[0], cli


def _folder() -> Path:
    return checkout_root() / "tools" / "hardhat"
