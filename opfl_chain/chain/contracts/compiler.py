"""Compilation of the contracts of this checkout with solc, cached in its build folder."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import solcx
from solcx.exceptions import SolcError, SolcNotInstalled

from opfl_chain.chain.errors import CompilationFailed, CompilerMissing
from opfl_chain.system.files import write_atomically

_ROOT = Path(__file__).resolve().parents[3]
_IMPORT = re.compile(r"^\s*import\s(?:[^;]*?\sfrom\s)?\s*[\"']([^\"']+)[\"']", re.MULTILINE)
_OUTPUTS = [
    "abi",
    "userdoc",
    "evm.bytecode.object",
    "evm.deployedBytecode.object",
    "evm.deployedBytecode.immutableReferences",
]


def checkout_root() -> Path:
    """Return the folder with `contracts/` and `foundry.toml`, located from this package."""
    for needed in ("contracts", "foundry.toml", "package.json"):
        if not (_ROOT / needed).exists():
            raise CompilerMissing(
                f"{_ROOT / needed} is missing. opfl_chain compiles its contracts from a checkout: "
                "clone the repository and install it with `make setup` (pip install -e .)."
            )
    return _ROOT


def build_folder(name: str) -> Path:
    """Return a folder for files that can be rebuilt at any time."""
    folder = _ROOT / ".build" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True)
class Solc:
    path: Path
    version: str
    """Includes the commit but not the platform: all builds of a commit compile alike."""
    native: bool

    def compile(self, standard_input: dict[str, Any]) -> dict[str, Any]:
        """Compile standard JSON input to standard JSON output."""
        try:
            return solcx.compile_standard(standard_input, solc_binary=self.path)
        except SolcError as error:
            raise CompilationFailed(error.message) from error


def required_version() -> str:
    """Return the version that package.json pins; foundry and ape use the same package."""
    package = json.loads((checkout_root() / "package.json").read_text())
    return str(package["dependencies"]["solc"])


def shim() -> Solc:
    """Return the WebAssembly compiler of the npm package `solc`."""
    path = checkout_root() / "tools" / "solc"
    if not (checkout_root() / "node_modules" / "solc").exists():
        raise CompilerMissing(
            f"neither node_modules/solc nor a native solc {required_version()} is installed. "
            "Run `make setup`."
        )
    return _inspect(path, native=False)


def find_solc() -> Solc:
    """Return the native compiler if py-solc-x has the right version, else the shim."""
    try:
        path = solcx.install.get_executable(required_version())
    except SolcNotInstalled:
        return shim()
    # `make setup` links the shim where py-solc-x looks, so that ape finds it.
    if path.resolve() == (checkout_root() / "tools" / "solc").resolve():
        return shim()
    return _inspect(path, native=True)


@lru_cache
def _inspect(path: Path, *, native: bool) -> Solc:
    try:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        detail = getattr(error, "stderr", "") or error
        raise CompilerMissing(f"{path} --version failed: {detail}. Run `make setup`.") from error
    found = re.search(r"Version: (\d+\.\d+\.\d+)(\+commit\.[0-9a-f]+)", told.stdout)
    if found is None or found[1] != required_version():
        raise CompilerMissing(
            f"{path} reports {told.stdout.strip()!r}, but package.json requires solc "
            f"{required_version()}. Run `make setup`, or remove that file."
        )
    return Solc(path, found[1] + found[2], native)


def standard_input(paths: Iterable[Path]) -> dict[str, Any]:
    """Return the compiler input for these files and their imports."""
    root = checkout_root()
    profile = _profile(root)
    remappings = sorted(profile.get("remappings", []))
    return {
        "language": "Solidity",
        "sources": _closure(root, paths, [tuple(r.split("=", 1)) for r in remappings]),
        "settings": {
            "remappings": remappings,
            "optimizer": {"enabled": profile["optimizer"], "runs": profile["optimizer_runs"]},
            "viaIR": profile["via_ir"],
            "evmVersion": profile["evm_version"],
            "metadata": {
                "bytecodeHash": profile["bytecode_hash"],
                "appendCBOR": profile["cbor_metadata"],
            },
            "outputSelection": {"*": {"*": _OUTPUTS, "": ["ast"]}},
        },
    }


def _profile(root: Path) -> dict[str, Any]:
    profile: dict[str, Any] = tomllib.loads((root / "foundry.toml").read_text())["profile"][
        "default"
    ]
    needed = {"optimizer", "optimizer_runs", "via_ir", "evm_version", "bytecode_hash"}
    if missing := (needed | {"cbor_metadata"}) - profile.keys():
        raise CompilerMissing(
            f"foundry.toml leaves {', '.join(sorted(missing))} to forge's defaults. Set them "
            "in [profile.default], or Python and forge may compile different bytecode."
        )
    return profile


def _closure(
    root: Path, paths: Iterable[Path], remappings: list[tuple[str, ...]]
) -> dict[str, dict[str, str]]:
    sources: dict[str, dict[str, str]] = {}
    pending = [(path.resolve().relative_to(root).as_posix(), "the command line") for path in paths]
    while pending:
        name, importer = pending.pop()
        if name in sources:
            continue
        file = root / name
        if not file.is_file():
            raise CompilationFailed(f"{name}, imported by {importer}, does not exist in {root}")
        text = file.read_text(encoding="utf-8")
        sources[name] = {"content": text}
        pending += [(_resolve(found, name, remappings), name) for found in _IMPORT.findall(text)]
    return dict(sorted(sources.items()))


def _resolve(imported: str, importer: str, remappings: list[tuple[str, ...]]) -> str:
    if imported.startswith("."):
        return posixpath.normpath(posixpath.join(posixpath.dirname(importer), imported))
    matching = [(prefix, target) for prefix, target in remappings if imported.startswith(prefix)]
    if not matching:
        return imported
    prefix, target = max(matching, key=lambda pair: len(pair[0]))
    return target + imported.removeprefix(prefix)


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
    """(start, length) of the immutables in the deployed bytecode, set by the constructor."""
    documentation: Mapping[str, Any]
    """solc's userdoc: the @notice of functions, events and errors."""


@dataclass(frozen=True)
class Compilation:
    artifacts: Mapping[str, Artifact]
    """Keyed by the name of the contract."""
    enums: Mapping[str, tuple[str, ...]]
    """The members of every enum, by its name as ABIs spell it (`Phase` or `IJobs.Phase`)."""


def contract_sources() -> list[Path]:
    """Return all Solidity files of the contracts folder."""
    folder = checkout_root() / "contracts"
    found = sorted(folder.rglob("*.sol"))
    if not found:
        raise CompilerMissing(f"{folder} holds no Solidity files. Restore the checkout.")
    return found


def compile_contracts(paths: Sequence[Path] | None = None, solc: Solc | None = None) -> Compilation:
    """Compile these files, or the whole contracts folder; cached if nothing changed."""
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
    """Extract the part of the compiler's output that we use, about a hundredth."""
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
