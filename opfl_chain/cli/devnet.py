"""`opfl devnet`: a local chain with the contracts deployed."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from opfl_chain.chain.deployment import deploy
from opfl_chain.chain.devnet import StartedDevnet, start_devnet
from opfl_chain.chain.send.sender import TransactionSender
from opfl_chain.cli.options import Chain
from opfl_chain.system.files import write_atomically


def devnet(
    chain: Chain = "anvil",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="RPC port; 0 for any free port.")
    ] = 8545,
    block_time: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.05, help="Interval of blocks without transactions."),
    ] = 1.0,
    accounts: Annotated[int, typer.Option(min=1, max=1000, help="Funded accounts.")] = 20,
    folder: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Folder for deployment.json, accounts.json and the log.",
            file_okay=False,
        ),
    ] = Path("runs/devnet"),
) -> None:
    """Run a local chain with the contracts deployed, until Ctrl-C.

    The chain is new every time. The keys of its funded accounts are written to
    accounts.json: use them on this chain only.
    """
    console = Console()
    folder.mkdir(parents=True, exist_ok=True)
    with start_devnet(
        chain, port=port, block_time=block_time, accounts=accounts, log=folder / "chain.log"
    ) as started:
        write_accounts(started, folder / "accounts.json")
        with TransactionSender(started.rpc, started.accounts[0], folder) as sender:
            deployment = deploy(sender, started.rpc)
        deployment.write(folder / "deployment.json")
        console.print(f"[bold]{chain}[/] at {started.rpc_url}, chain id {started.chain_id}")
        for name, address in deployment.addresses.items():
            console.print(f"{name:<9}{address}", highlight=False)
        console.print(f"{folder}/deployment.json and accounts.json written; Ctrl-C stops the chain")
        wait_for_signal()
    console.print("ended")


def write_accounts(started: StartedDevnet, path: Path) -> None:
    """Write the keys of the accounts to a file that only its owner can read."""
    keys = {account.address: "0x" + bytes(account.key).hex() for account in started.accounts}
    write_atomically(path, json.dumps(keys, indent=2) + "\n", mode=0o600)


def wait_for_signal() -> None:
    """Return on SIGINT or SIGTERM."""
    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    asked.wait()
