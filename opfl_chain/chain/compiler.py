"""Compiled contracts, cached by the content of everything that went into them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opfl_chain.chain.checkout import build_folder, checkout_root
from opfl_chain.chain.errors import CompilerMissing
from opfl_chain.chain.files import write_atomically
from opfl_chain.chain.solc import Solc, find_solc
from opfl_chain.chain.sources import standard_input


@dataclass(frozen=True)
class Artifact:
    """One compiled contract or interface."""

    name: str
    source: str
    abi: list[dict[str, Any]]
    bytecode: bytes
    """Empty for interfaces and abstract contracts."""
    deployed_bytecode: bytes
    immutable_spans: tuple[tuple[int, int], ...]
    """(start, length) in the deployed bytecode of what the constructor fills in."""
    documentation: Mapping[str, Any]
    """solc's userdoc: the @notice of functions, events and errors."""


@dataclass(frozen=True)
class Compilation:
    artifacts: Mapping[str, Artifact]
    """By the contract's name."""
    enums: Mapping[str, tuple[str, ...]]
    """The members of every enum, by its name as ABIs spell it (`Phase` or `IJobs.Phase`)."""


def contract_sources() -> list[Path]:
    """All files of the contracts folder."""
    folder = checkout_root() / "contracts"
    found = sorted(folder.rglob("*.sol"))
    if not found:
        raise CompilerMissing(f"{folder} holds no Solidity files. Restore the checkout.")
    return found


def compile_contracts(paths: Sequence[Path] | None = None, solc: Solc | None = None) -> Compilation:
    """Compile these files, or the whole contracts folder; instant when nothing changed."""
    solc = solc or find_solc()
    request = standard_input(paths or contract_sources())
    digest = hashlib.sha256(json.dumps([solc.version, request], sort_keys=True).encode())
    cached = build_folder("contracts") / f"{digest.hexdigest()}.json"
    if cached.exists():
        return _parse(json.loads(cached.read_text()))
    reduced = _reduce(solc.compile(request))
    write_atomically(cached, json.dumps(reduced))
    return _parse(reduced)


def _reduce(output: dict[str, Any]) -> dict[str, Any]:
    """What we use of the compiler's output, which is a hundredth of it."""
    contracts = [
        {
            "name": name,
            "source": source,
            "abi": contract["abi"],
            "bytecode": contract["evm"]["bytecode"]["object"],
            "deployed": contract["evm"]["deployedBytecode"]["object"],
            "immutables": [
                [span["start"], span["length"]]
                for spans in contract["evm"]["deployedBytecode"]
                .get("immutableReferences", {})
                .values()
                for span in spans
            ],
            "userdoc": contract["userdoc"],
        }
        for source, members in output["contracts"].items()
        for name, contract in members.items()
    ]
    enums = {
        name: members
        for source in output["sources"].values()
        for name, members in _enums(source["ast"], "")
    }
    return {"contracts": contracts, "enums": enums}


def _enums(node: Mapping[str, Any], scope: str) -> Iterator[tuple[str, list[str]]]:
    for child in node.get("nodes", []):
        if child["nodeType"] == "EnumDefinition":
            yield scope + child["name"], [member["name"] for member in child["members"]]
        elif child["nodeType"] == "ContractDefinition":
            yield from _enums(child, f"{child['name']}.")


def _parse(reduced: Mapping[str, Any]) -> Compilation:
    artifacts = [
        Artifact(
            name=contract["name"],
            source=contract["source"],
            abi=contract["abi"],
            bytecode=bytes.fromhex(contract["bytecode"]),
            deployed_bytecode=bytes.fromhex(contract["deployed"]),
            immutable_spans=tuple((start, length) for start, length in contract["immutables"]),
            documentation=contract["userdoc"],
        )
        for contract in reduced["contracts"]
    ]
    return Compilation(
        {artifact.name: artifact for artifact in artifacts},
        {name: tuple(members) for name, members in reduced["enums"].items()},
    )
