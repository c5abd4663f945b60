"""`ape run deploy`: deploy the six contracts, wired to each other.

Their constructors take each other's addresses, which are predicted from the deployer's nonce; the
deployment of the last contract fails if a prediction was wrong.
"""

import click
from ape import project
from ape.cli import ConnectedProviderCommand, account_option

from opfl_chain.chain.deployment import ORDER, created_address


def deploy_protocol(deployer):
    """Deploy the contracts, and return them in the order of `ORDER`."""
    nonce = deployer.nonce
    addresses = [created_address(deployer.address, nonce + i) for i in range(len(ORDER))]
    deposits, beacon, jobs, rounds, charges, rewards = addresses
    return (
        deployer.deploy(project.Deposits, jobs, charges, rewards),
        deployer.deploy(project.Beacon, jobs, rounds),
        deployer.deploy(project.Jobs, deposits, beacon, rounds, charges),
        deployer.deploy(project.Rounds, jobs, beacon),
        deployer.deploy(project.Charges, deposits, jobs, rounds, beacon),
        deployer.deploy(project.Rewards, deposits, jobs, rounds, beacon, charges),
    )


@click.command(cls=ConnectedProviderCommand)
@account_option()
def cli(account):
    """Deploy the contracts with ACCOUNT and print their addresses."""
    for contract in deploy_protocol(account):
        click.echo(f"{contract.contract_type.name:<10}{contract.address}")
