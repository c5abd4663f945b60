"""The code of docs/API.md is one program that runs."""

import re
from pathlib import Path

import pytest

from opfl_chain.chain.devnet import Anvil
from opfl_chain.jobs.contract_demo.contract_job import ACCOUNTS_BESIDE_CLIENTS, ContractJob

PAGE = Path(__file__).resolve().parents[2] / "docs" / "API.md"
CLIENTS = 2


@pytest.fixture
def rpc_url(tmp_path, monkeypatch):
    """A node with a job, whose deployment is in the current folder."""
    monkeypatch.chdir(tmp_path)
    with (
        Anvil(block_time=None, accounts=CLIENTS + ACCOUNTS_BESIDE_CLIENTS) as chain,
        ContractJob(chain.rpc, chain.accounts, chain.mine, tmp_path) as rehearsal,
    ):
        rehearsal.register_keys()
        rehearsal.create_job(audit_rate=0.5, rounds=2)
        rehearsal.deployment.write(tmp_path / "deployment.json")
        yield chain.rpc_url


def test_code_of_the_page_runs(rpc_url):
    text = PAGE.read_text(encoding="utf-8")
    program = {"rpc_url": rpc_url, "__name__": "docs"}
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), program)
