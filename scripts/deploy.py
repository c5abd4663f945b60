"""`ape run deploy`: deploy the four contracts, wired to each other.

Their constructors take each other's addresses, which are predicted from the deployer's nonce; the
deployment of the last contract fails if a prediction was wrong.
"""

import click
from ape import project
from ape.cli import ConnectedProviderCommand, account_option

from opfl_chain.chain.deployment import created_address


def deploy_protocol(deployer):
    """Deploy `Deposits`, `Jobs`, `Beacon` and `Slashing`, and return them in this order."""
    nonce = deployer.nonce
    jobs, beacon, slashing = (created_address(deployer.address, nonce + i) for i in (1, 2, 3))
    deposits = deployer.deploy(project.Deposits, jobs, slashing)
    return (
        deposits,
        deployer.deploy(project.Jobs, deposits, beacon, slashing),
        deployer.deploy(project.Beacon, jobs),
        deployer.deploy(project.Slashing, deposits, jobs, beacon),
    )


@click.command(cls=ConnectedProviderCommand)
@account_option()
def cli(account):
    """Deploy the contracts with ACCOUNT and print their addresses."""
    for contract in deploy_protocol(account):
        click.echo(f"{contract.contract_type.name:<10}{contract.address}")
