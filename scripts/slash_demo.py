"""`ape run slash_demo`: deposits, audits and a charge on the network that ape is connected to.

Gradients and verdicts are made up: `opfl demo` trains and replays.
"""

import tempfile
from pathlib import Path

import click
from ape import accounts, chain
from ape.cli import ConnectedProviderCommand
from eth_account import Account
from rich.console import Console

from opfl_chain.chain.devnet import attach
from opfl_chain.jobs.contract_demo.contract_job import ACCOUNTS_BESIDE_CLIENTS, ContractJob
from opfl_chain.jobs.contract_demo.slashing import play


@click.command(cls=ConnectedProviderCommand)
@click.option("--clients", default=5, type=click.IntRange(2, 7), help="The last one cheats.")
@click.option("--audit-rate", default=0.3, type=click.FloatRange(0.05, 1))
def cli(clients, audit_rate):
    """Show how a client that cheats loses its deposit, with ape's test accounts."""
    count = clients + ACCOUNTS_BESIDE_CLIENTS
    funded = [Account.from_key(account.private_key) for account in accounts.test_accounts[:count]]
    with (
        attach(chain.provider.http_uri) as network,
        tempfile.TemporaryDirectory(prefix="opfl-demo-") as folder,
        ContractJob(network.rpc, funded, chain.mine, Path(folder)) as actors,
    ):
        play(actors, audit_rate, Console())
