"""One job, played once, and its trail."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from contract_player import ACCOUNTS, ContractPlayer
from played_job import PlayedJob

from opfl_chain.chain.devnet import Anvil, derive_accounts
from opfl_chain.protocol.economics import ETHER
from opfl_chain.trail import Trail, read_trail

MNEMONIC = "test test test test test test test test test test test junk"


@dataclass
class Played:
    chain: Anvil
    player: ContractPlayer
    job: int
    deployment: Path
    trail: Trail


def funded_accounts(chain):
    """Return the accounts of all parties, the same in every run."""
    accounts = derive_accounts(MNEMONIC, ACCOUNTS)
    for account in accounts:
        chain.rpc.request("anvil_setBalance", account.address, hex(1000 * ETHER))
    return accounts


@pytest.fixture(scope="session")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    with (
        Anvil(block_time=None) as chain,
        ContractPlayer(chain, funded_accounts(chain), folder) as player,
    ):
        job = PlayedJob(player).play().job
        player.deployment.write(folder / "deployment.json")
        trail = read_trail(chain.rpc, player.deployment, job)
        yield Played(chain, player, job, folder / "deployment.json", trail)


@pytest.fixture(scope="session")
def trail(played):
    return played.trail
