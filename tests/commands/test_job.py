"""`opfl job` on a real chain: a file makes one job, and the chain says what it is."""

import json
import os
import re
import subprocess
import sys

import pytest

from opfl_chain.chain.anvil import Anvil
from opfl_chain.chain.deployment import deploy
from opfl_chain.chain.keys import create_ethereum_key
from opfl_chain.chain.keystore import SCRYPT_CHEAP
from opfl_chain.chain.rpc import Rpc
from opfl_chain.chain.sender import TransactionSender
from opfl_chain.commands.job_example import JOB
from opfl_chain.nodes import models
from opfl_chain.nodes.chain_view import ChainView
from opfl_chain.nodes.job import Job
from opfl_chain.nodes.models import Models
from opfl_chain.nodes.state import State

OPFL = [sys.executable, "-m", "opfl_chain.cli"]
PASSWORD = "correct horse"


def opfl(*arguments):
    return subprocess.run(
        [*OPFL, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "OPFL_PASSWORD": PASSWORD},
    )


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    with Anvil(block_time=None) as anvil:
        with TransactionSender(anvil.rpc, anvil.accounts[0], folder / "sender") as sender:
            anvil.deployment = deploy(sender, anvil.rpc)
        anvil.deployment.write(folder / "deployment.json")
        create_ethereum_key(
            folder / "creator.json", PASSWORD, account=anvil.accounts[1], scrypt_n=SCRYPT_CHEAP
        )
        anvil.folder = folder
        yield anvil


@pytest.fixture
def example(chain):
    """The example, with the addresses of this chain."""
    text = JOB.replace("https://rpc.example", chain.rpc_url).replace(
        "confirmations = 2", "confirmations = 0"
    )
    for number, account in enumerate(chain.accounts[2:7], start=1):
        text = text.replace(f"0x{number:040x}", account.address)
    return text


@pytest.fixture
def create(chain):
    def run(text, *options, name="job.toml"):
        file = chain.folder / name
        file.write_text(text)
        return opfl("job", "create", file, *options)

    return run


def job_count(chain):
    with Rpc(chain.rpc_url) as rpc:
        return chain.deployment.connect(rpc).jobs.job_count()


def test_the_example_makes_one_job_however_often_it_is_run(chain, create, example, tmp_path):
    found = create(example, "--json", tmp_path / "job.json")
    assert found.returncode == 0, found.stderr
    facts = json.loads((tmp_path / "job.json").read_text())
    assert facts["rounds"] == 100 and facts["client_deposit_ether"] == 0.5
    assert facts["audit_probability"] == pytest.approx(0.1)
    again = create(example)
    assert f"job {facts['job']} was created by this file before" in again.stdout
    assert job_count(chain) == facts["job"]


def test_daemons_can_take_part_in_it(chain, create, example, tmp_path):
    assert create(example).returncode == 0
    job = Job.find(chain.rpc, chain.deployment, job_count(chain))
    state = State(tmp_path / "state.sqlite", "server", models.SCHEMA)
    first = Models(ChainView(job, tmp_path / "chain.sqlite"), state)
    assert first.weights(job.terms.model_hash) is not None
    state.close()
    assert job.terms.penalties.not_delivered == job.terms.client_deposit // 10


def test_it_is_shown_from_the_chain_alone(chain, create, example, tmp_path):
    assert create(example).returncode == 0
    options = ["--rpc-url", chain.rpc_url, "--deployment", chain.folder / "deployment.json"]
    found = opfl("job", "show", 1, *options, "--json", tmp_path / "shown.json")
    assert found.returncode == 0, found.stderr
    assert re.search("^progress.stage +enrolling$", found.stdout, re.MULTILINE)
    facts = json.loads((tmp_path / "shown.json").read_text())
    assert facts["members"] == [account.address for account in chain.accounts[2:5]]
    assert facts["progress"]["clients"] == 0
    missing = opfl("job", "show", 99, *options)
    assert missing.returncode == 1 and "there is no job 99" in missing.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('client_deposit = "0.5"', 'client_deposit = "half"', "client_deposit: "),
        ('client_deposit = "0.5"', "client_deposit = -1", "client_deposit: "),
        ("replay_outside = 1.0", "replay_outside = 1.5", "client_penalties.replay_outside: "),
        ("veto = 300", "", "phases.veto: Field required"),
        ("[split] ", "[splits] ", "splits: Extra inputs are not permitted"),
        ("burn = 5000", "burn = 5001", "SplitNotWhole"),
        ("unbonding_delay = 7200", "unbonding_delay = 10", "UnbondingTooShort"),
        ('model = "lenet-61706"', 'model = "gpt"', "gpt"),
        ("batch_size = 8", "batch_size = 7", "opfl calibrate"),
        ('# policy = "run/policy.json"', 'policy = "run/policy.json"', "give both"),
        ("enrol = 7200", "enrol = 0", "phases.enrol: "),
    ],
)
def test_what_is_wrong_is_said_in_a_line_and_nothing_is_created(
    chain, create, example, old, new, said
):
    assert old in example
    before = job_count(chain)
    found = create(example.replace(old, new), name="wrong.toml")
    assert found.returncode == 1 and said in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1
    assert job_count(chain) == before


def test_addresses_of_the_example_are_refused(chain, create):
    found = create(JOB.replace("https://rpc.example", chain.rpc_url), name="example.toml")
    assert found.returncode == 1 and "is that of the example" in found.stderr


def test_the_example_is_printed_without_a_file():
    found = opfl("job", "create", "--example")
    assert (found.returncode, found.stdout) == (0, JOB)
