"""One job, played once, and its trail."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from played_job import CLIENTS, PlayedJob

from opfl_chain.chain.anvil import Anvil
from opfl_chain.chain.devnet import derive_accounts
from opfl_chain.rehearsal.stage import ACCOUNTS_BESIDE_CLIENTS, Stage
from opfl_chain.rehearsal.terms import ETHER
from opfl_chain.trail import Trail, read_trail

MNEMONIC = "test test test test test test test test test test test junk"


@dataclass
class Played:
    chain: Anvil
    stage: Stage
    job: int
    deployment: Path
    trail: Trail


def funded_accounts(chain):
    """The same in every run: who is audited depends on the addresses."""
    accounts = derive_accounts(MNEMONIC, CLIENTS + ACCOUNTS_BESIDE_CLIENTS)
    for account in accounts:
        chain.rpc.request("anvil_setBalance", account.address, hex(1000 * ETHER))
    return accounts


@pytest.fixture(scope="session")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    with (
        Anvil(block_time=None) as chain,
        Stage(chain.rpc, funded_accounts(chain), chain.mine, folder) as stage,
    ):
        job = PlayedJob(stage).play().job
        stage.deployment.write(folder / "deployment.json")
        trail = read_trail(chain.rpc, stage.deployment, job)
        yield Played(chain, stage, job, folder / "deployment.json", trail)


@pytest.fixture(scope="session")
def trail(played):
    return played.trail
