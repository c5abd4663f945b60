"""One chain for all tests of a module, and the same accounts in every run."""

from contextlib import contextmanager

import pytest
from contract_player import ACCOUNTS
from played import JobPlayer
from seated import ProvedPlayer

from opfl_chain.chain.devnet import Anvil, derive_accounts
from opfl_chain.protocol.economics import ETHER

MNEMONIC = "test test test test test test test test test test test junk"


@pytest.fixture(scope="module")
def chain():
    with Anvil(block_time=None) as anvil:
        yield anvil


@pytest.fixture(scope="module")
def player(chain, tmp_path_factory):
    """The contracts, and a roster with fixed keys: keys and addresses decide who is audited."""
    with _player(JobPlayer, chain, tmp_path_factory) as player:
        yield player


@pytest.fixture(scope="module")
def proved(chain, tmp_path_factory):
    """The same, for jobs of proved steps."""
    with _player(ProvedPlayer, chain, tmp_path_factory) as player:
        yield player


@contextmanager
def _player(kind, chain, tmp_path_factory):
    accounts = derive_accounts(MNEMONIC, ACCOUNTS)
    for account in accounts:
        chain.rpc.request("anvil_setBalance", account.address, hex(10_000 * ETHER))
    with kind(chain, accounts, tmp_path_factory.mktemp("player")) as player:
        player.register_keys()
        yield player
