"""One job, played once, and its trail."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from played_job import CLIENTS, PlayedJob

from opfl_chain.chain.devnet import Anvil, derive_accounts
from opfl_chain.jobs.contract_demo.contract_job import ACCOUNTS_BESIDE_CLIENTS, ContractJob
from opfl_chain.protocol.economics import ETHER
from opfl_chain.trail import Trail, read_trail

MNEMONIC = "test test test test test test test test test test test junk"


@dataclass
class Played:
    chain: Anvil
    rehearsal: ContractJob
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
        ContractJob(chain.rpc, funded_accounts(chain), chain.mine, folder) as rehearsal,
    ):
        job = PlayedJob(rehearsal).play().job
        rehearsal.deployment.write(folder / "deployment.json")
        trail = read_trail(chain.rpc, rehearsal.deployment, job)
        yield Played(chain, rehearsal, job, folder / "deployment.json", trail)


@pytest.fixture(scope="session")
def trail(played):
    return played.trail
