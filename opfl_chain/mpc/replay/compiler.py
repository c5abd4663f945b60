"""Compiler from JAX functions to SPU's code."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
from jax.experimental import enable_x64
from jaxlib import xla_client
from spu.utils import frontend

from opfl_chain.mpc.replay.programs import Program
from opfl_chain.mpc.session.errors import CompilationFailed, ExecutableInvalid
from opfl_chain.mpc.session.executable import Executable, MpcOptions, Output, Visibility
from opfl_chain.mpc.session.libspu import libspu, reason_of

_VISIBILITY = {
    Visibility.PUBLIC: libspu.Visibility.VIS_PUBLIC,
    Visibility.SECRET: libspu.Visibility.VIS_SECRET,
}


@dataclass(frozen=True)
class Lowered:
    """A traced program: constants and control flow, without any Python."""

    program: Program
    outputs: tuple[Output, ...]
    hlo: bytes

    def fingerprint(self, options: MpcOptions) -> str:
        """Return the hash of everything that the compiler's result depends on."""
        facts = {
            "name": self.program.name,
            "inputs": [asdict(each) for each in self.program.inputs],
            "outputs": [asdict(each) for each in self.outputs],
            "options": options.to_json(),
            "jax": jax.__version__,
        }
        text = json.dumps(facts, sort_keys=True) + "\n" + self._canonical_text()
        return hashlib.sha256(text.encode()).hexdigest()

    def _canonical_text(self) -> str:
        # The HLO's bytes hold file names, line numbers, and counters that depend on earlier traces.
        # XLA's own fingerprint leaves constants out, but they are part of the program.
        options = xla_client._xla.HloPrintOptions()  # type: ignore[attr-defined]
        options.print_metadata = False
        options.canonicalize_instruction_names = True
        options.canonicalize_computations = True
        options.print_large_constants = True
        module = xla_client.XlaComputation(self.hlo).get_hlo_module()
        text: str = module.to_string(options)
        return text


def lower(program: Program) -> Lowered:
    """Trace a program."""
    names = [each.name for each in program.inputs]
    output_names: list[str] = []

    def flat(*arrays: Any) -> tuple[Any, ...]:
        outputs = program.function(dict(zip(names, arrays, strict=True)))
        output_names[:] = outputs
        return tuple(outputs.values())

    with enable_x64():
        arguments: list[Any] = [
            jax.ShapeDtypeStruct(each.shape, each.dtype)  # type: ignore[no-untyped-call]
            for each in program.inputs
        ]
        # The first half of `frontend.compile`, separate so that a cache can look up the result.
        with frontend._jax_lock:
            patches = frontend._patch_jax()
            try:
                hlo, outputs = frontend._jax_compilation(flat, (), None, arguments, {})
            finally:
                frontend._restore_jax_patch(patches)
    return Lowered(
        program,
        tuple(
            Output(name, tuple(each.shape), str(each.dtype))
            for name, each in zip(output_names, outputs, strict=True)
        ),
        hlo,
    )


def compile_lowered(lowered: Lowered, options: MpcOptions) -> Executable:
    """Compile a traced program. Equal programs give equal code, on any machine.

    An operation that SPU lacks (a Fourier transform, say) makes libspu abort the process, after
    naming the operation on stderr.
    """
    program = lowered.program
    visibilities = [_VISIBILITY[each.visibility] for each in program.inputs]
    source = libspu.CompilationSource(libspu.SourceIRType.XLA, lowered.hlo, visibilities)
    try:
        code = libspu.compile(source, options.compiler_options())
    except RuntimeError as error:
        raise CompilationFailed(program.name, reason_of(error)) from error
    return Executable(program.name, program.inputs, lowered.outputs, options, code)


def compile_program(program: Program, options: MpcOptions) -> Executable:
    """Trace and compile a program."""
    return compile_lowered(lower(program), options)


def default_folder() -> Path:
    """Return the user's cache folder, by the XDG convention."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "opfl_chain" / "executables"


class ExecutableCache:
    """A folder of executables by fingerprint. Any number of processes may share it.

    A program is traced each time, because only the trace shows whether it has changed; it is
    compiled once.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()

    def compile(self, program: Program, options: MpcOptions) -> Executable:
        """Return the executable of a program, from the cache or newly compiled."""
        lowered = lower(program)
        readable = re.sub(r"[^\w.-]", "_", program.name)
        path = self.folder / f"{readable}-{lowered.fingerprint(options)}.executable"
        if stored := _read(path):
            return stored
        executable = compile_lowered(lowered, options)
        _write(path, executable)
        return executable


def _read(path: Path) -> Executable | None:
    """Return the stored executable, or None if it is missing or damaged."""
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
