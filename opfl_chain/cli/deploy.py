"""`opfl deploy`: deployment of the contracts on an existing chain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from opfl_chain.chain.deployment import deploy as deploy_contracts
from opfl_chain.chain.devnet import attach
from opfl_chain.chain.keys import load_ethereum_key
from opfl_chain.chain.send.sender import TransactionSender
from opfl_chain.cli.options import Keystore, Password


def deploy(
    keystore: Keystore,
    password: Password,
    rpc_url: Annotated[str, typer.Option(metavar="URL", help="RPC address of a node.")],
    chain_id: Annotated[
        int | None, typer.Option(metavar="N", help="Refuse to deploy on any other chain.")
    ] = None,
    confirmations: Annotated[
        int, typer.Option(min=0, help="Confirmations of each transaction before the next.")
    ] = 1,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Output file with the addresses.", dir_okay=False)
    ] = Path("deployment.json"),
) -> None:
    """Deploy the contracts on any chain with the Prague upgrade.

    Can be interrupted: the same command with the same FILE resumes and deploys
    nothing twice. The journal of sent transactions is kept beside FILE.
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
