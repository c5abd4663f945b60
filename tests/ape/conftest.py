"""Fresh contracts for every test."""

import sys
from pathlib import Path

import pytest
from harness import Protocol

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from deploy import deploy_protocol


@pytest.fixture
def protocol(accounts, chain):
    deposits, jobs, beacon, slashing = deploy_protocol(accounts[0])
    deployed = Protocol(
        deposits=deposits,
        jobs=jobs,
        beacon=beacon,
        slashing=slashing,
        chain=chain,
        members=list(accounts[1:4]),
        clients=list(accounts[4:8]),
        relayer=accounts[8],
        treasury=accounts[9],
    )
    deployed.register_keys()
    return deployed
