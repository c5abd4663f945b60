from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from opfl_chain.chain.contracts import compiler as checkout
from opfl_chain.chain.contracts import compiler as sources
from opfl_chain.chain.contracts.compiler import (
    Artifact,
    Solc,
    checkout_root,
    compile_contracts,
    find_solc,
    required_version,
    shim,
)
from opfl_chain.chain.errors import CompilationFailed, CompilerMissing

COUNTER = Path(__file__).parent / "fixtures" / "Counter.sol"


def test_python_and_forge_compile_the_same_bytes(tmp_path: Path) -> None:
    root = checkout_root()
    forge_build = [root / "node_modules" / ".bin" / "forge", "build"]
    folders = ["--out", tmp_path / "out", "--cache-path", tmp_path / "cache"]
    subprocess.run(
        [*forge_build, root / "contracts" / "Deposits.sol", *folders],
        cwd=root,
        check=True,
        capture_output=True,
    )
    forge = json.loads((tmp_path / "out" / "Deposits.sol" / "Deposits.json").read_text())
    ours = compile_contracts().artifacts["Deposits"]
    assert forge["bytecode"]["object"] == "0x" + ours.bytecode.hex()
    assert forge["deployedBytecode"]["object"] == "0x" + ours.deployed_bytecode.hex()
    assert sorted(forge["abi"], key=str_sorted) == sorted(ours.abi, key=str_sorted)


def str_sorted(entry: dict[str, Any]) -> str:
    return json.dumps(entry, sort_keys=True)


def test_nothing_is_compiled_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile_contracts([COUNTER])
    monkeypatch.setattr(Solc, "compile", lambda *_: pytest.fail("it is compiled again"))
    assert compile_contracts([COUNTER]) == first


def test_bytecode_carries_no_metadata(counter_artifact: Artifact) -> None:
    assert b"ipfs" not in counter_artifact.bytecode
    assert b"solc" not in counter_artifact.bytecode


def test_immutables_are_known(counter_artifact: Artifact) -> None:
    assert counter_artifact.immutable_spans
    for start, length in counter_artifact.immutable_spans:
        assert counter_artifact.deployed_bytecode[start : start + length] == bytes(length)


def test_a_native_compiler_is_preferred_and_compiles_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No native compiler is available here; a second program other than our shim stands in.
    native = tmp_path / f"solc-v{required_version()}"
    native.write_text(f'#!/bin/sh\nexec "{checkout_root() / "tools" / "solc"}" "$@"\n')
    native.chmod(0o755)
    monkeypatch.setenv("SOLCX_BINARY_PATH", str(tmp_path))
    found = find_solc()
    assert (found.path, found.native, found.version) == (native, True, shim().version)
    monkeypatch.setattr(checkout, "_ROOT", checkout_root())
    assert found.compile(sources.standard_input([COUNTER])) == shim().compile(
        sources.standard_input([COUNTER])
    )


def test_without_a_native_compiler_the_shim_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOLCX_BINARY_PATH", str(tmp_path))
    assert find_solc() == shim()
    (tmp_path / f"solc-v{required_version()}").symlink_to(checkout_root() / "tools" / "solc")
    assert find_solc() == shim()  # `make setup` links it there for ape


def test_a_compiler_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    native = tmp_path / f"solc-v{required_version()}"
    native.write_text('#!/bin/sh\necho "Version: 0.4.11+commit.68ef5810.Linux.g++"\n')
    native.chmod(0o755)
    monkeypatch.setenv("SOLCX_BINARY_PATH", str(tmp_path))
    with pytest.raises(CompilerMissing, match=r"0\.4\.11.*package\.json requires solc"):
        find_solc()
    native.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(CompilerMissing, match="make setup"):
        find_solc()


def test_a_mistake_in_a_contract_is_shown_as_the_compiler_says_it() -> None:
    wrong = checkout_root() / ".build" / "Wrong.sol"
    wrong.write_text("pragma solidity 0.8.37;\ncontract Wrong { uint x = true; }\n")
    with pytest.raises(CompilationFailed, match=r"(?s)TypeError.*Wrong\.sol"):
        compile_contracts([wrong])
    wrong.write_text('import "./Nowhere.sol";\n')
    with pytest.raises(CompilationFailed, match=r"Nowhere\.sol, imported by \.build/Wrong\.sol"):
        compile_contracts([wrong])
    wrong.unlink()


def test_a_package_outside_its_checkout_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout, "_ROOT", tmp_path)
    with pytest.raises(CompilerMissing, match="from a checkout"):
        compile_contracts()
    for needed in ("contracts", "foundry.toml", "package.json"):
        (tmp_path / needed).mkdir() if needed == "contracts" else (tmp_path / needed).touch()
    (tmp_path / "package.json").write_text('{"dependencies": {"solc": "0.8.37"}}')
    with pytest.raises(CompilerMissing, match="make setup"):
        shim()


def test_settings_that_foundry_toml_leaves_open_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "foundry.toml").write_text("[profile.default]\noptimizer = true\n")
    monkeypatch.setattr(sources, "checkout_root", lambda: tmp_path)
    with pytest.raises(CompilerMissing, match=r"cbor_metadata.*via_ir"):
        sources.standard_input([])
