"""Options, compilation, executables and their cache."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpc_support import OPTIONS, Programs, power

from opfl_chain.mpc.replay import compiler as executable_cache
from opfl_chain.mpc.replay.compiler import (
    ExecutableCache,
    compile_lowered,
    compile_program,
    default_folder,
    lower,
)
from opfl_chain.mpc.replay.programs import Program, public, secret
from opfl_chain.mpc.session.errors import CompilationFailed, ExecutableInvalid, OptionsInvalid
from opfl_chain.mpc.session.executable import Executable, MpcOptions
from opfl_chain.protocol.policy import Policy

PAIR = (secret("x", (4,), "int64"), secret("y", (4,), "int64"))


def test_options_become_spus() -> None:
    options = MpcOptions(
        20, runtime={"fxp_div_goldschmidt_iters": 3}, compiler={"disable_div_sqrt_rewrite": True}
    )
    config = options.runtime_config()
    assert (config.fxp_fraction_bits, config.fxp_div_goldschmidt_iters) == (20, 3)
    assert config.fxp_exp_mode.name == "EXP_PADE"
    assert options.compiler_options().disable_div_sqrt_rewrite
    assert MpcOptions.from_json(options.to_json()) == options


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"fraction_bits": 0}, "fraction bits are 0"),
        ({"fraction_bits": 40}, "fraction bits are 40"),
        ({"exp_mode": "EXP"}, "must be one of EXP_DEFAULT, EXP_PADE"),
        ({"runtime": {"fast": True}}, "has no option RuntimeConfig.fast"),
        ({"runtime": {"SerializeToString": 1}}, "has no option"),
        ({"runtime": {"fxp_exp_iters": "8"}}, "'8', it must be of type int"),
        ({"runtime": {"fxp_fraction_bits": 3}}, "set fxp_fraction_bits as a field"),
        ({"compiler": {"disable_div_sqrt_rewrite": 1}}, "must be of type bool"),
    ],
)
def test_options_that_spu_does_not_have_are_refused(arguments: Any, reason: str) -> None:
    with pytest.raises(OptionsInvalid, match=reason):
        MpcOptions(**arguments)


def test_options_cannot_change() -> None:
    given = {"fxp_exp_iters": 4}
    options = MpcOptions(runtime=given)
    digest = options.digest
    given["fxp_exp_iters"] = 5
    assert options.digest == digest
    with pytest.raises(TypeError):
        options.runtime["fxp_exp_iters"] = 5  # type: ignore[index]


def policy(version: str) -> Policy:
    return Policy.model_validate(
        {
            "model": {"name": "lenet-61706"},
            "optimizer": {"name": "sgd", "learning_rate": 0.1},
            "data": {
                "input_shape": (28, 28, 1),
                "classes": 10,
                "mean": (0.0,),
                "std": (1.0,),
                "batch_size": 1,
            },
            "seeds": {"model": 0, "data": 0},
            "fraction_bits": 20,
            "loss_scale": 64,
            "audit_rate": 10**17,
            "commitment_scheme": "shares",
            "spu": {
                "version": version,
                "exp_mode": "EXP_PADE",
                "runtime_options": {"fxp_exp_iters": 8},
            },
        }
    )


def test_options_come_from_the_policy() -> None:
    assert MpcOptions.of_policy(policy("0.9.5")) == MpcOptions(20, runtime={"fxp_exp_iters": 8})
    with pytest.raises(OptionsInvalid, match=r"for SPU 0\.9\.4"):
        MpcOptions.of_policy(policy("0.9.4"))


def test_an_executable_survives_its_bytes(programs: Programs) -> None:
    data = programs.mixed.to_bytes()
    again = Executable.from_bytes(data)
    assert again == programs.mixed
    assert again.digest == programs.mixed.digest
    for damaged in (b"", data[:10], data[:100], b"x" + data, data.replace(b"int64", b"int6")):
        with pytest.raises(ExecutableInvalid):
            Executable.from_bytes(damaged.replace(b'"inputs"', b'"inputz"'))


def test_the_digest_covers_all_that_is_computed(programs: Programs) -> None:
    short = programs.short
    variants = [
        replace(short, name="other"),
        replace(short, code=short.code + b" "),
        replace(short, options=MpcOptions(21)),
        replace(short, inputs=short.inputs[::-1]),
        replace(short, inputs=(public("x", (4,), "int64"), short.inputs[1])),
        programs.other_short,
    ]
    assert len({short.digest, *(each.digest for each in variants)}) == 1 + len(variants)


def test_inputs_must_be_unique_and_of_a_known_dtype() -> None:
    with pytest.raises(CompilationFailed, match="not unique: x, x"):
        Program("p", power(1), (secret("x", (1,)), secret("x", (1,))))
    with pytest.raises(CompilationFailed, match="'x' is float16"):
        Program("p", power(1), (secret("x", (1,), "float16"),))


def test_sixty_four_bits_stay() -> None:
    executable = compile_program(Program("p", power(1), PAIR), OPTIONS)
    assert [each.dtype for each in executable.outputs] == ["int64"]


def test_program_that_spu_cannot_read_is_reported() -> None:
    lowered = replace(lower(Program("p", power(1), PAIR)), hlo=b"garbage")
    with pytest.raises(CompilationFailed, match="'p' does not compile"):
        compile_lowered(lowered, OPTIONS)


# --- cache


def count_compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    compiled: list[str] = []
    compile_lowered = executable_cache.compile_lowered

    def counted(lowered: Any, options: MpcOptions) -> Executable:
        compiled.append(lowered.program.name)
        return compile_lowered(lowered, options)

    monkeypatch.setattr(executable_cache, "compile_lowered", counted)
    return compiled


def test_cache_compiles_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = count_compilations(monkeypatch)
    # Another function object, traced again: the same program.
    executables = [
        ExecutableCache(tmp_path).compile(Program("p", power(2), PAIR), OPTIONS) for _ in range(3)
    ]
    assert compiled == ["p"]
    assert executables[0] == executables[1] == executables[2]


def test_cache_tells_apart_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = count_compilations(monkeypatch)
    cache = ExecutableCache(tmp_path)
    table = np.arange(100.0)

    def lookup(arrays: dict[str, Any]) -> dict[str, Any]:
        return {"r": arrays["x"] + table}

    wide = (secret("x", (100,)),)
    cache.compile(Program("p", power(2), PAIR), OPTIONS)
    cache.compile(Program("p", power(3), PAIR), OPTIONS)
    cache.compile(Program("p", power(2), PAIR), MpcOptions(21))
    cache.compile(Program("p", power(2), (public("x", (4,), "int64"), PAIR[1])), OPTIONS)
    cache.compile(Program("p", lookup, wide), OPTIONS)
    table[50] += 1  # a constant in the middle of a large array
    cache.compile(Program("p", lookup, wide), OPTIONS)
    assert len(compiled) == 6


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_cache_recompiles_what_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes | None
) -> None:
    compiled = count_compilations(monkeypatch)
    cache, program = ExecutableCache(tmp_path), Program("p", power(2), PAIR)
    cache.compile(program, OPTIONS)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-1] if damage is None else damage)
    cache.compile(program, OPTIONS)
    cache.compile(program, OPTIONS)
    assert compiled == ["p", "p"]
    assert list(tmp_path.iterdir()) == [path]


def test_cache_is_where_users_keep_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_folder() == Path("/caches/opfl_chain/executables")


def test_another_process_compiles_the_same_bytes(programs: Programs) -> None:
    """The process is another, has traced other programs, and has other file names in the trace."""
    script = (
        "from mpc_support import *\n"
        "two = (secret('x', (2,)), secret('y', (2,)))\n"
        "compile_program(Program('before', power(9), two), OPTIONS)\n"
        "from opfl_chain.mpc.replay.compiler import lower\n"
        "pair = (secret('x', (4,), 'int64'), secret('y', (4,), 'int64'))\n"
        "program = Program('short', power(3), pair)\n"
        "print(compile_program(program, OPTIONS).digest, lower(program).fingerprint(OPTIONS))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, check=True, text=True
    )
    fingerprint = lower(Program("short", power(3), PAIR)).fingerprint(OPTIONS)
    assert found.stdout.split() == [programs.short.digest, fingerprint]
