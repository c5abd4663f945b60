"""From a JAX function to SPU's code."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

import jax
from jax.experimental import enable_x64
from jaxlib import xla_client
from spu.utils import frontend

from opfl_chain.mpc.errors import CompilationFailed
from opfl_chain.mpc.executable import Executable, Output, Visibility
from opfl_chain.mpc.native import libspu, reason_of
from opfl_chain.mpc.options import MpcOptions
from opfl_chain.mpc.program import Program

_VISIBILITY = {
    Visibility.PUBLIC: libspu.Visibility.VIS_PUBLIC,
    Visibility.SECRET: libspu.Visibility.VIS_SECRET,
}


@dataclass(frozen=True)
class Lowered:
    """A traced program: all constants and control flow, and nothing of Python any more."""

    program: Program
    outputs: tuple[Output, ...]
    hlo: bytes

    def fingerprint(self, options: MpcOptions) -> str:
        """The hash of everything that the compiler's result depends on."""
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
        # The bytes of the HLO hold file names and lines, and numbers that depend on what was traced
        # before. XLA's own fingerprint leaves constants out, and they are part of the program.
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
        # What `frontend.compile` does first; apart, so that a cache can look at the result.
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

    An operation that SPU does not have (a Fourier transform, say) makes libspu abort the process,
    after it has written to stderr which one it is.
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
