"""Fresh contracts for every test."""

import sys
from pathlib import Path

import pytest
from harness import Protocol

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from deploy import deploy_protocol


@pytest.fixture
def protocol(accounts, chain):
    deployed = Protocol(
        *deploy_protocol(accounts[0]),
        chain=chain,
        roster=list(accounts[1:5]),
        clients=list(accounts[5:9]),
        treasury=accounts[9],
    )
    deployed.register_keys()
    return deployed
