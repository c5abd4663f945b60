"""Which Solidity compiler runs: a native one that py-solc-x has installed, else the npm one."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import solcx
from solcx.exceptions import SolcError, SolcNotInstalled

from opfl_chain.chain.checkout import checkout_root
from opfl_chain.chain.errors import CompilationFailed, CompilerMissing


@dataclass(frozen=True)
class Solc:
    path: Path
    version: str
    """With the commit and without the platform: all builds of one commit compile alike."""
    native: bool

    def compile(self, standard_input: dict[str, Any]) -> dict[str, Any]:
        """Standard JSON in, standard JSON out."""
        try:
            return solcx.compile_standard(standard_input, solc_binary=self.path)
        except SolcError as error:
            raise CompilationFailed(error.message) from error


def required_version() -> str:
    """The version that package.json pins; foundry and ape use the same package."""
    package = json.loads((checkout_root() / "package.json").read_text())
    return str(package["dependencies"]["solc"])


def shim() -> Solc:
    """The WebAssembly compiler of the npm package `solc`."""
    path = checkout_root() / "tools" / "solc"
    if not (checkout_root() / "node_modules" / "solc").exists():
        raise CompilerMissing(
            f"neither node_modules/solc nor a native solc {required_version()} is installed. "
            "Run `make setup`."
        )
    return _inspect(path, native=False)


def find_solc() -> Solc:
    """The native compiler where py-solc-x has one of the right version, else the shim."""
    try:
        path = solcx.install.get_executable(required_version())
    except SolcNotInstalled:
        return shim()
    # `make setup` links the shim where py-solc-x looks, because that is how ape finds it.
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
            f"{path} says {told.stdout.strip()!r} and package.json asks for solc "
            f"{required_version()}. Run `make setup`, or remove that file."
        )
    return Solc(path, found[1] + found[2], native)
