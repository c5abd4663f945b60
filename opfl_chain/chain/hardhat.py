"""Hardhat as a second development chain, to show that nothing depends on Anvil's ways."""

from __future__ import annotations

from pathlib import Path

from opfl_chain.chain.checkout import build_folder, checkout_root
from opfl_chain.chain.child import Child
from opfl_chain.chain.devnet import ACCOUNTS, BALANCE_ETHER, StartedDevnet
from opfl_chain.chain.errors import DevnetFailed

_START_SECONDS = 60.0


class Hardhat(StartedDevnet):
    """A Hardhat node on a port of its own, under the Node.js 22 that is installed beside it."""

    _logging_method = "hardhat_setLoggingEnabled"

    def __init__(
        self,
        *,
        block_time: float | None = 1.0,
        port: int = 0,
        log: Path | None = None,
        accounts: int = ACCOUNTS,
    ) -> None:
        node, cli = installed()
        super().__init__(log=log, accounts=accounts)
        build_folder("hardhat")
        child = Child(
            [node, cli, "node", "--hostname", "127.0.0.1", "--port", str(port)],
            self.log,
            cwd=_folder(),
            env={
                "HARDHAT_DISABLE_TELEMETRY_PROMPT": "true",
                "OPFL_MNEMONIC": self.mnemonic,
                "OPFL_ACCOUNTS": str(accounts),
                "OPFL_BALANCE_WEI": str(BALANCE_ETHER * 10**18),
                "OPFL_CHAIN_ID": str(self.chain_id),
                "OPFL_BLOCK_TIME_MS": str(round((block_time or 0) * 1000)),
            },
        )
        url = child.await_line(r"JSON-RPC server at (http://127\.0\.0\.1:\d+)", _START_SECONDS)
        self._connect(child, url, fresh=True)

    def mine(self, blocks: int = 1) -> None:
        # `hardhat_mine` makes blocks that do not name the hash of the one before as their parent.
        self.rpc.batch_or_raise([("evm_mine", ())] * blocks)


def installed() -> tuple[Path, Path]:
    """(node, hardhat), or an error that says how to get them."""
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
