"""Functions that one process names and another calls."""

from __future__ import annotations

import hashlib
import importlib
from functools import cache, reduce
from pathlib import Path
from typing import Any

from opfl_chain.mpc.errors import ProgramFailed
from opfl_chain.mpc.session import Procedure

_PACKAGE = "opfl_chain"


def name_of(procedure: Procedure) -> str:
    """`module:name`, by which the SPU process finds it."""
    name = f"{procedure.__module__}:{procedure.__qualname__}"
    if find_procedure(name) is not procedure:
        raise ProgramFailed(name, "only a function of a module can be called in another process")
    return name


def find_procedure(name: str) -> Procedure:
    module, _, path = name.partition(":")
    if module.partition(".")[0] != _PACKAGE or "<" in path:
        raise ProgramFailed(name, f"procedures are named functions of modules of {_PACKAGE}")
    found: Any = reduce(getattr, path.split("."), importlib.import_module(module))
    procedure: Procedure = found
    return procedure


@cache
def source_digest() -> str:
    """The hash of the sources that procedures are made of: members must run the same version."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    files = (file for part in ("mpc", "protocol") for file in (root / part).rglob("*.py"))
    for path in sorted(files):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root)} {len(content)}\n".encode() + content)
    return digest.hexdigest()
