"""`opfl devnet`, `opfl deploy` and `opfl keys` with real processes."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from eth_account import Account

from opfl_chain.chain.deployment import Deployment
from opfl_chain.chain.keys import create_ethereum_key
from opfl_chain.chain.rpc import Rpc

OPFL = [sys.executable, "-m", "opfl_chain.cli"]
PASSWORD = {**os.environ, "OPFL_PASSWORD": "correct horse"}


def opfl(*arguments, environment=None):
    return subprocess.run(
        [*OPFL, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=environment or PASSWORD,
    )


@contextmanager
def running_devnet(folder):
    arguments = ["devnet", "--port", "0", "--folder", str(folder), "--accounts", "3"]
    process = subprocess.Popen([*OPFL, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        first = process.stdout.readline()
        assert " at http" in first, first
        while "Ctrl-C" not in process.stdout.readline():
            assert process.poll() is None
        yield process, first.split(" at ")[1].split(",")[0]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def devnet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("devnet")
    with running_devnet(folder) as (process, url):
        yield folder, url
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=600) == 0
        with socket.socket() as probe:
            port = int(url.rpartition(":")[2])
            assert probe.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def test_devnet_holds_the_contracts_it_wrote_down(devnet):
    folder, url = devnet
    with Rpc(url) as rpc:
        contracts = Deployment.read(folder / "deployment.json").connect(rpc)
        assert contracts.jobs.job_count() == 0
    assert (folder / "accounts.json").stat().st_mode & 0o777 == 0o600


def test_deploy_twice_with_one_file_deploys_once(devnet, tmp_path):
    folder, url = devnet
    key = json.loads((folder / "accounts.json").read_text())
    account = Account.from_key(list(key.values())[1])
    create_ethereum_key(tmp_path / "key.json", "correct horse", account=account, scrypt_n=2)
    arguments = ["deploy", "--rpc-url", url, "--keystore", tmp_path / "key.json"]
    arguments += ["--confirmations", "0", "--out", tmp_path / "deployment.json"]
    for _ in range(2):
        finished = opfl(*arguments)
        assert finished.returncode == 0, finished.stderr
    with Rpc(url) as rpc:
        assert rpc.nonce(account.address) == 6
        Deployment.read(tmp_path / "deployment.json").connect(rpc)


def test_deploy_with_a_wrong_password_says_so(devnet, tmp_path):
    _, url = devnet
    create_ethereum_key(tmp_path / "key.json", "another", scrypt_n=2)
    refused = opfl("deploy", "--rpc-url", url, "--keystore", tmp_path / "key.json")
    assert refused.returncode == 1
    assert "password" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_deploy_on_a_dead_node_says_so(tmp_path):
    create_ethereum_key(tmp_path / "key.json", "correct horse", scrypt_n=2)
    started = time.monotonic()
    refused = opfl("deploy", "--rpc-url", "http://127.0.0.1:1", "--keystore", tmp_path / "key.json")
    assert refused.returncode == 1
    assert "127.0.0.1:1" in refused.stderr
    assert time.monotonic() - started < 300


@pytest.mark.parametrize("kind", ["ethereum", "bls"])
def test_keys_are_made_once_and_shown_again(kind, tmp_path):
    path = tmp_path / "key.json"
    made = opfl("keys", kind, path)
    assert made.returncode == 0, made.stderr
    assert opfl("keys", "show", path).stdout == made.stdout
    again = opfl("keys", kind, path)
    assert again.returncode == 1
    assert "exists" in again.stderr
