"""`opfl job` on a real chain: a file creates one job, and the chain shows it."""

import json
import os
import re
import subprocess
import sys
import tomllib

import command_line
import pytest

from opfl_chain.chain.bindings.types import Penalties
from opfl_chain.chain.deployment import deploy
from opfl_chain.chain.devnet import Anvil
from opfl_chain.chain.keys import SCRYPT_CHEAP, create_ethereum_key
from opfl_chain.chain.rpc import Rpc
from opfl_chain.chain.send.sender import TransactionSender
from opfl_chain.chain.terms import (
    FEWEST_CONTRIBUTIONS,
    MAX_CLIENTS,
    TREASURY_SHARE,
    budget,
    default_penalties,
)
from opfl_chain.cli.job import JOB
from opfl_chain.lab.calibration.reference import reference_boundary
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.economics import ETHER
from opfl_chain.roles import model_store as models
from opfl_chain.roles.job import Job
from opfl_chain.roles.job_file import DEFAULT_BATCH_SIZE, DEFAULT_OPTIMIZER
from opfl_chain.roles.model_store import Models
from opfl_chain.roles.state import State
from opfl_chain.roles.view.view import ChainView

OPFL = [sys.executable, "-m", "opfl_chain.cli"]
PASSWORD = "correct horse"


def opfl(*arguments):
    return command_line.opfl(*arguments, OPFL_PASSWORD=PASSWORD)


def opfl_process(*arguments):
    """The command as a user runs it: tests of its errors need no process of their own."""
    return subprocess.run(
        [*OPFL, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
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
    def run(text, *options, name="job.toml", command=opfl):
        file = chain.folder / name
        file.write_text(text)
        return command("job", "create", file, *options)

    return run


def job_count(chain):
    with Rpc(chain.rpc_url) as rpc:
        return chain.deployment.connect(rpc).jobs.job_count()


def test_the_example_makes_one_job_however_often_it_is_run(chain, create, example, tmp_path):
    found = create(example, "--json", tmp_path / "job.json", command=opfl_process)
    assert found.returncode == 0, found.stderr
    facts = json.loads((tmp_path / "job.json").read_text())
    assert facts["rounds"] == 100 and facts["client_deposit_ether"] == 0.5
    assert facts["audit_probability"] == pytest.approx(0.1)
    assert facts["budget_ether"] == 13
    assert "13 ether are escrowed" in found.stdout
    again = create(example, command=opfl_process)
    assert f"job {facts['job']} was created by this file before" in again.stdout
    assert job_count(chain) == facts["job"]


def test_daemons_can_take_part_in_it(chain, create, example, tmp_path):
    assert create(example).returncode == 0
    job = Job.find(chain.rpc, chain.deployment, job_count(chain))
    state = State(tmp_path / "state.sqlite", "server", models.SCHEMA)
    first = Models(ChainView(job, tmp_path / "chain.sqlite"), state)
    assert first.weights(job.terms.model_hash) is not None
    state.close()
    assert job.terms.penalties.client == job.terms.client_deposit
    assert job.contracts.deposits.budget_of(job.id) == budget(job.terms)


def test_job_is_shown_from_the_chain_alone(chain, create, example, tmp_path):
    assert create(example).returncode == 0
    options = ["--rpc-url", chain.rpc_url, "--deployment", chain.folder / "deployment.json"]
    found = opfl("job", "show", 1, *options, "--json", tmp_path / "shown.json")
    assert found.returncode == 0, found.stderr
    assert re.search("^progress.stage +enrolling$", found.stdout, re.MULTILINE)
    facts = json.loads((tmp_path / "shown.json").read_text())
    assert facts["members"] == [account.address for account in chain.accounts[2:5]]
    assert facts["standbys"] == [chain.accounts[5].address]
    assert facts["progress"]["seats"] == facts["members"]
    assert facts["progress"]["clients"] == 0
    assert facts["progress"]["budget_left_ether"] == 13
    missing = opfl("job", "show", 99, *options)
    assert missing.returncode == 1 and "job 99 does not exist" in missing.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('client_deposit = "0.5"', 'client_deposit = "half"', "client_deposit: "),
        ('client_deposit = "0.5"', "client_deposit = -1", "client_deposit: "),
        ("client = 1.0", "client = 1.5", "penalties.client: "),
        ("response = 1800", "", "phases.response: Field required"),
        ("[pay] ", "[pays] ", "pays: Extra inputs are not permitted"),
        ("dissent = 0.2", "dissent = 0.05", "WrongOrder"),
        ("response = 1800", "response = 10", "WindowTooShort"),
        ("unbonding_delay = 7200", "unbonding_delay = 10", "WindowTooShort"),
        ("fewest_contributions = 3", "fewest_contributions = 2", "FewestOutOfRange"),
        ('member = "0.01"', 'member = "0.2"', "WrongOrder"),
        ('model = "lenet-61706"', 'model = "gpt"', "gpt"),
        ("batch_size = 8", "batch_size = 7", "opfl calibrate"),
        ('# policy = "run/policy.json"', 'policy = "run/policy.json"', "give both"),
        ("enrol = 7200", "enrol = 0", "phases.enrol: "),
    ],
)
def test_error_in_the_file_is_one_line_and_creates_nothing(chain, create, example, old, new, said):
    assert old in example
    before = job_count(chain)
    found = create(example.replace(old, new), name="wrong.toml")
    assert found.returncode == 1 and said in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1
    assert job_count(chain) == before


def test_policy_of_other_plugins_is_refused_before_anything_is_paid(
    chain, create, example, tmp_path
):
    policy = default_policy("lenet-61706", batch_size=8)
    boundary = reference_boundary(policy)
    policy = policy.model_copy(update={"plugins": {"model:other-lenet": "ab" * 32}})
    boundary = boundary.model_copy(update={"policy_hash": "0x" + policy.hash.hex()})
    files = {"policy": policy, "boundary": boundary}
    for name, document in files.items():
        (tmp_path / f"{name}.json").write_bytes(document.canonical_json)
        example = example.replace(
            f'# {name} = "run/{name}.json"', f'{name} = "{tmp_path / name}.json"'
        )
    before = job_count(chain)
    found = create(example, name="plugins.toml")
    assert found.returncode == 1 and "uses the plug-in model:other-lenet" in found.stderr
    assert job_count(chain) == before


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"word_bits": 40}, "no honest step would pass"),
        ({"unit_bits": 52}, "could wrap around"),
        ({"value_bits": 8}, "give the policy more value_bits"),
    ],
)
def test_policy_whose_steps_cannot_be_proved_is_refused_before_anything_is_paid(
    chain, create, example, tmp_path, changes, said
):
    policy = default_policy("lenet-61706", rule="proved", batch_size=8)
    boundary = reference_boundary(policy)
    policy = policy.model_copy(update={"replay": policy.replay.model_copy(update=changes)})
    boundary = boundary.model_copy(update={"policy_hash": "0x" + policy.hash.hex()})
    for name, document in {"policy": policy, "boundary": boundary}.items():
        (tmp_path / f"{name}.json").write_bytes(document.canonical_json)
        example = example.replace(
            f'# {name} = "run/{name}.json"', f'{name} = "{tmp_path / name}.json"'
        )
    before = job_count(chain)
    found = create(example, name="bits.toml")
    assert found.returncode == 1 and said in found.stderr
    assert job_count(chain) == before


def test_addresses_of_the_example_are_refused(chain, create):
    text = JOB.replace("https://rpc.example", chain.rpc_url)
    found = create(text, name="example.toml", command=opfl_process)
    assert found.returncode == 1 and "is an address of the example" in found.stderr


def test_the_example_is_printed_without_a_file():
    found = opfl_process("job", "create", "--example")
    assert (found.returncode, found.stdout) == (0, JOB)


def test_the_example_has_the_default_terms():
    example = tomllib.loads(JOB)
    deposit, stake = ETHER // 2, ETHER
    penalties = example["penalties"]
    parts = {name: part * stake for name, part in penalties.items() if name != "client"}
    assert Penalties(client=penalties["client"] * deposit, **parts) == default_penalties(
        deposit, stake
    )
    assert example["treasury_share"] == TREASURY_SHARE
    assert example["max_clients"] == MAX_CLIENTS
    assert example["fewest_contributions"] == FEWEST_CONTRIBUTIONS
    assert example["training"]["batch_size"] == DEFAULT_BATCH_SIZE
    assert example["training"]["optimizer"] == DEFAULT_OPTIMIZER
