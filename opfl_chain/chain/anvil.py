"""Anvil as a development chain."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path
from typing import Literal

from opfl_chain.chain.checkout import checkout_root
from opfl_chain.chain.child import Child
from opfl_chain.chain.devnet import ACCOUNTS, BALANCE_ETHER, StartedDevnet
from opfl_chain.chain.errors import DevnetFailed
from opfl_chain.chain.files import write_atomically

_START_SECONDS = 20.0
_STATES = 500
"""Blocks whose states can be asked for."""
_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
Mining = Literal["transactions", "manual"]


class Anvil(StartedDevnet):
    """A real Anvil process on a port of its own.

    `mining="manual"` makes blocks only on `mine`. With `state` the chain is kept in that file when
    it is closed, and goes on from there the next time.
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
        # Anvil writes older states to disk, gigabytes an hour: by default to the home folder, where
        # they stay.
        command += ["--cache-path", self._scratch / "states"]
        if mining == "manual":
            command += ["--no-mining"]
        elif block_time is not None:
            # Mining on transactions alone stalls now and then when many arrive at once.
            command += ["--mixed-mining", "--block-time", f"{block_time:g}"]
        if state:
            command += ["--state", state]
        child = Child(command, self.log)
        address = child.await_line(r"Listening on (127\.0\.0\.1:\d+)", _START_SECONDS)
        self._connect(child, f"http://{address}", fresh=not resumed)

    def mine(self, blocks: int = 1) -> None:
        self.rpc.request("anvil_mine", hex(blocks))

    def reorg(self, depth: int) -> None:
        self.rpc.request("anvil_reorg", depth, [])


def binary() -> Path:
    """The server itself. The launcher that npm makes leaves it behind when it is killed."""
    architecture = _ARCHITECTURES.get(platform.machine().lower(), platform.machine())
    package = f"anvil-{platform.system().lower()}-{architecture}"
    path = checkout_root() / "node_modules" / "@foundry-rs" / package / "bin" / "anvil"
    if path.is_file():
        return path
    installed = shutil.which("anvil")
    if installed is None:
        raise DevnetFailed(
            f"there is no anvil: neither {path} nor one on the PATH. Run `make setup`, or install "
            "Foundry if your platform is not served by npm."
        )
    return Path(installed)
