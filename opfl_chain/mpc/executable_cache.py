"""Executables on disk: SPU compiles a gradient in seconds, and its members run it for months."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path

from opfl_chain.mpc.compiler import compile_lowered, lower
from opfl_chain.mpc.errors import ExecutableInvalid
from opfl_chain.mpc.executable import Executable
from opfl_chain.mpc.options import MpcOptions
from opfl_chain.mpc.program import Program


def default_folder() -> Path:
    """Where a user's caches are, by the XDG convention."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "opfl_chain" / "executables"


class ExecutableCache:
    """A folder of executables by fingerprint. Any number of processes may share it.

    A program is traced each time, because only the trace shows whether it is still the same; the
    compiler runs once.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()

    def compile(self, program: Program, options: MpcOptions) -> Executable:
        """The executable of a program, from the cache or new."""
        lowered = lower(program)
        readable = re.sub(r"[^\w.-]", "_", program.name)
        path = self.folder / f"{readable}-{lowered.fingerprint(options)}.executable"
        if stored := _read(path):
            return stored
        executable = compile_lowered(lowered, options)
        _write(path, executable)
        return executable


def _read(path: Path) -> Executable | None:
    """What is stored, unless it is missing or damaged."""
    try:
        data = path.read_bytes()
        digest, content = data[:32], data[32:]
        if hashlib.sha256(content).digest() != digest:
            return None
        return Executable.from_bytes(content)
    except (OSError, ExecutableInvalid):
        return None


def _write(path: Path, executable: Executable) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = executable.to_bytes()
    descriptor, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
