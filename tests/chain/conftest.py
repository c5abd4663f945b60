"""An Anvil chain, and a small contract on it with generated bindings."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from chain_support import create_counter
from eth_account.signers.local import LocalAccount

from opfl_chain.chain.codegen.package import generate
from opfl_chain.chain.contracts.compiler import Artifact, Compilation, compile_contracts
from opfl_chain.chain.devnet import Anvil
from opfl_chain.chain.send.sender import TransactionSender

COUNTER = Path(__file__).parent / "fixtures" / "Counter.sol"
PACKAGE = "counter_bindings"


@pytest.fixture(scope="session")
def compiled_counter() -> Compilation:
    return compile_contracts([COUNTER])


@pytest.fixture(scope="session")
def counter_artifact(compiled_counter: Compilation) -> Artifact:
    return compiled_counter.artifacts["Counter"]


@pytest.fixture(scope="session")
def bindings(
    compiled_counter: Compilation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ModuleType]:
    """The generated package; child processes find it through PYTHONPATH."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / PACKAGE).mkdir()
    for name, text in generate(compiled_counter, PACKAGE).items():
        (folder / PACKAGE / name).write_text(text)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [before])])
    sys.path.insert(0, str(folder))
    yield importlib.import_module(PACKAGE)
    sys.path.remove(str(folder))
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


@pytest.fixture
def anvil() -> Iterator[Anvil]:
    """A chain that mines one block per transaction."""
    with Anvil(block_time=None, accounts=3) as chain:
        yield chain


@pytest.fixture
def manual() -> Iterator[Anvil]:
    """A chain that mines only on demand."""
    with Anvil(mining="manual", accounts=3) as chain:
        yield chain


@pytest.fixture
def account(anvil: Anvil) -> LocalAccount:
    return anvil.accounts[0]


@pytest.fixture
def sender(anvil: Anvil, account: LocalAccount, tmp_path: Path) -> Iterator[TransactionSender]:
    with TransactionSender(anvil.rpc, account, tmp_path) as sender:
        yield sender


@pytest.fixture
def counter(anvil: Anvil, bindings: ModuleType, counter_artifact: Artifact, tmp_path: Path) -> Any:
    return create_counter(anvil, bindings, counter_artifact, tmp_path)
