"""`opfl deploy`: the contracts on a chain that somebody else runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from opfl_chain.chain.deployment import deploy as deploy_contracts
from opfl_chain.chain.devnet import attach
from opfl_chain.chain.keys import load_ethereum_key
from opfl_chain.chain.sender import TransactionSender
from opfl_chain.commands.options import Keystore, Password


def deploy(
    keystore: Keystore,
    password: Password,
    rpc_url: Annotated[str, typer.Option(metavar="URL", help="A node of the chain.")],
    chain_id: Annotated[
        int | None, typer.Option(metavar="N", help="Refuse any other chain than this.")
    ] = None,
    confirmations: Annotated[
        int, typer.Option(min=0, help="Blocks on top of each transaction before the next.")
    ] = 1,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the addresses go.", dir_okay=False)
    ] = Path("deployment.json"),
) -> None:
    """Deploy the contracts on any chain with the Prague upgrade.

    Can be interrupted: the same command with the same FILE finishes what was
    begun and deploys nothing twice. What was sent is kept beside FILE.
    """
    account = load_ethereum_key(keystore, password)
    console = Console()
    with (
        attach(rpc_url, chain_id=chain_id) as chain,
        TransactionSender(
            chain.rpc, account, out.resolve().parent, confirmations=confirmations
        ) as sender,
        console.status(f"deploying with {account.address}"),
    ):
        deployment = deploy_contracts(sender, chain.rpc)
    deployment.write(out)
    for name, address in deployment.addresses.items():
        console.print(f"{name:<9}{address}", highlight=False)
    console.print(f"{out} written")
