"""One chain for all tests of a module, and the same accounts in every run."""

import pytest
from roles_support import DaemonRehearsal

from opfl_chain.chain import bls
from opfl_chain.chain.devnet import Anvil, derive_accounts
from opfl_chain.jobs.contract_demo.contract_job import ACCOUNTS_BESIDE_CLIENTS
from opfl_chain.protocol.economics import ETHER

MNEMONIC = "test test test test test test test test test test test junk"
CLIENTS = 8


@pytest.fixture(scope="module")
def chain():
    with Anvil(block_time=None) as anvil:
        yield anvil


@pytest.fixture(scope="module")
def rehearsal(chain, tmp_path_factory):
    """The contracts, and members with fixed keys: keys and addresses decide who is audited."""
    accounts = derive_accounts(MNEMONIC, CLIENTS + ACCOUNTS_BESIDE_CLIENTS)
    for account in accounts:
        chain.rpc.request("anvil_setBalance", account.address, hex(10_000 * ETHER))
    folder = tmp_path_factory.mktemp("rehearsal")
    with DaemonRehearsal(chain.rpc, accounts, chain.mine, folder) as rehearsal:
        rehearsal.keys = [bls.SecretKey((7 + i).to_bytes(32, "big")) for i in range(3)]
        rehearsal.register_keys()
        yield rehearsal
