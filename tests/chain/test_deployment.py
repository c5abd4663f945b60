from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opfl_chain.chain.bindings.errors import UnknownJob
from opfl_chain.chain.bls import SecretKey
from opfl_chain.chain.deployment import ORDER, Deployment, deploy
from opfl_chain.chain.devnet import Anvil, StartedDevnet, installed, start_devnet
from opfl_chain.chain.errors import ChainMismatch, DeploymentInvalid, DevnetFailed
from opfl_chain.chain.send.sender import TransactionSender
from opfl_chain.protocol.identifiers import JobId


@pytest.fixture(params=[pytest.param("anvil"), pytest.param("hardhat", marks=pytest.mark.hardhat)])
def devnet(request: pytest.FixtureRequest) -> Iterator[StartedDevnet]:
    if request.param == "hardhat":
        try:
            installed()
        except DevnetFailed as missing:
            pytest.skip(str(missing))
    with start_devnet(request.param, accounts=3) as devnet:
        yield devnet


def test_the_same_deployment_works_on_every_chain(devnet: StartedDevnet, tmp_path: Path) -> None:
    account = devnet.accounts[0]
    with TransactionSender(devnet.rpc, account, tmp_path) as sender:
        deployment = deploy(sender, devnet.rpc)
        assert deploy(sender, devnet.rpc) == deployment  # nothing is created a second time
        assert sender.next_nonce() == len(ORDER)
        contracts = deployment.connect(devnet.rpc)
        assert contracts.jobs.job_count() == 0
        with pytest.raises(UnknownJob) as caught:
            sender.send(contracts.rounds.open_round(JobId(7)), "open")
        assert caught.value.job == 7

        key = SecretKey.generate()
        public = key.public_key.eip2537()
        statement = contracts.beacon.possession_message(account.address, public)
        proof = key.prove_possession(statement).eip2537()
        sender.send(contracts.beacon.register_key(public, proof), "register")
        assert contracts.beacon.key_of(account.address) == public


def test_an_interrupted_deployment_is_finished(anvil: Anvil, tmp_path: Path) -> None:
    account = anvil.accounts[0]
    with TransactionSender(anvil.rpc, account, tmp_path) as sender:
        whole = deploy(sender, anvil.rpc)
    anvil.reorg(2)  # takes back the last two creations
    assert anvil.rpc.code(whole.addresses["Rewards"]) == b""
    with TransactionSender(anvil.rpc, account, tmp_path) as sender:
        finished = deploy(sender, anvil.rpc)
    assert finished.addresses == whole.addresses
    assert finished.code_hashes == whole.code_hashes


@pytest.fixture
def deployed(anvil: Anvil, tmp_path: Path) -> Deployment:
    with TransactionSender(anvil.rpc, anvil.accounts[0], tmp_path) as sender:
        return deploy(sender, anvil.rpc)


def test_a_deployment_can_be_written_and_read(deployed: Deployment, tmp_path: Path) -> None:
    deployed.write(tmp_path / "deployment.json")
    assert Deployment.read(tmp_path / "deployment.json") == deployed


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", "[" * 10_000, '{"chain_id": 1}', '{"contracts": {"Deposits": 5}}'],
)
def test_a_malformed_file_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "deployment.json").write_text(content)
    with pytest.raises(DeploymentInvalid, match="is not a deployment"):
        Deployment.read(tmp_path / "deployment.json")
    with pytest.raises(DeploymentInvalid, match="does not exist"):
        Deployment.read(tmp_path / "none.json")
    with pytest.raises(DeploymentInvalid, match="cannot be read: Is a directory"):
        Deployment.read(tmp_path)


def changed(deployment: Deployment, path: Path, **changes: Any) -> Deployment:
    deployment.write(path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, **changes}))
    return Deployment.read(path)


def test_another_chain_is_refused(anvil: Anvil, deployed: Deployment, tmp_path: Path) -> None:
    elsewhere = changed(deployed, tmp_path / "deployment.json", chain_id=1)
    with pytest.raises(ChainMismatch, match="not the chain of the deployment"):
        elsewhere.connect(anvil.rpc)


def test_other_code_is_refused(anvil: Anvil, deployed: Deployment) -> None:
    address = deployed.addresses["Beacon"]
    anvil.rpc.request("anvil_setCode", address, "0x00")
    with pytest.raises(DeploymentInvalid, match=f"{address} should hold Beacon"):
        deployed.connect(anvil.rpc)


def test_code_that_we_do_not_compile_is_refused(
    anvil: Anvil, deployed: Deployment, tmp_path: Path
) -> None:
    from eth_utils.crypto import keccak

    evil = b"\x60\x00"
    anvil.rpc.request("anvil_setCode", deployed.addresses["Beacon"], "0x" + evil.hex())
    contracts = {
        name: {"address": deployed.addresses[name], "code_hash": deployed.code_hashes[name]}
        for name in ORDER
    }
    contracts["Beacon"]["code_hash"] = "0x" + keccak(evil).hex()
    forged = changed(deployed, tmp_path / "deployment.json", contracts=contracts)
    with pytest.raises(DeploymentInvalid, match=r"other code than contracts/Beacon\.sol"):
        forged.connect(anvil.rpc)


def test_contracts_of_two_deployments_are_not_mixed(
    anvil: Anvil, deployed: Deployment, tmp_path: Path
) -> None:
    with TransactionSender(anvil.rpc, anvil.accounts[1], tmp_path) as sender:
        other = deploy(sender, anvil.rpc)
    contracts = {
        name: {"address": d.addresses[name], "code_hash": d.code_hashes[name]}
        for name, d in zip(ORDER, [other, *[deployed] * (len(ORDER) - 1)], strict=True)
    }
    mixed = changed(deployed, tmp_path / "deployment.json", contracts=contracts)
    with pytest.raises(DeploymentInvalid, match=r"Deposits\.JOBS is"):
        mixed.connect(anvil.rpc)
