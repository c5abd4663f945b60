"""Solidity sources with everything they import, as the compiler's standard JSON input.

All settings come from foundry.toml, so that forge, ape and this package compile the same bytes.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from opfl_chain.chain.checkout import checkout_root
from opfl_chain.chain.errors import CompilationFailed, CompilerMissing

_IMPORT = re.compile(r"^\s*import\s(?:[^;]*?\sfrom\s)?\s*[\"']([^\"']+)[\"']", re.MULTILINE)
_OUTPUTS = [
    "abi",
    "userdoc",
    "evm.bytecode.object",
    "evm.deployedBytecode.object",
    "evm.deployedBytecode.immutableReferences",
]


def standard_input(paths: Iterable[Path]) -> dict[str, Any]:
    """The compiler input for these files and all that they import."""
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
