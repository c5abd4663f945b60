"""What several tests of sessions use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from opfl_chain.mpc.compiler import compile_program
from opfl_chain.mpc.encoding import split
from opfl_chain.mpc.executable import Executable
from opfl_chain.mpc.local_committee import LocalCommittee
from opfl_chain.mpc.options import MpcOptions
from opfl_chain.mpc.party import Party
from opfl_chain.mpc.program import Program, public, secret
from opfl_chain.mpc.session import RunResult
from opfl_chain.mpc.shares import Share

OPTIONS = MpcOptions()
BITS = OPTIONS.fraction_bits
X, Y = np.arange(4) - 1, np.arange(4) + 2
POWERS = X * Y**3
"""What the short program computes."""


def power(steps: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def function(arrays: dict[str, Any]) -> dict[str, Any]:
        x, y = arrays["x"], arrays["y"]
        return {"result": jax.lax.fori_loop(0, steps, lambda _, value: value * y, x)}

    return function


def mixed(arrays: dict[str, Any]) -> dict[str, Any]:
    """Outputs of every kind of storage."""
    a, b, w = arrays["a"], arrays["b"], arrays["w"]
    return {
        "bit": a > b,
        "product": a * b,
        "bits": b ^ 3,
        "narrow": (a > b).astype("int32"),
        "real": a.astype("float32") * w,
        "public": w * 2,
    }


@dataclass(frozen=True)
class Programs:
    short: Executable
    other_short: Executable
    """Another program of the same name."""
    long: Executable
    """Seconds of multiplications."""
    mixed: Executable


def compile_programs() -> Programs:
    pair = (secret("x", (4,), "int64"), secret("y", (4,), "int64"))
    three = (secret("a", (4,), "int64"), secret("b", (4,), "int64"), public("w", (4,)))
    return Programs(
        compile_program(Program("short", power(3), pair), OPTIONS),
        compile_program(Program("short", power(4), pair), OPTIONS),
        compile_program(Program("long", power(20_000), pair), OPTIONS),
        compile_program(Program("mixed", mixed, three), OPTIONS),
    )


SHARES = {"x": split(X, BITS), "y": split(Y, BITS)}


def inputs_of(rank: int) -> dict[str, Share]:
    return {name: shares[rank] for name, shares in SHARES.items()}


def run_in_session(
    party: Party, executable: Executable, audit: str, **limits: float
) -> Callable[[], RunResult]:
    def action() -> RunResult:
        with party.session(audit, **{"seconds": 30.0, **limits}) as session:
            return session.run(executable, inputs_of(party.rank))

    return action


def outcomes(actions: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each returned or raised, all at the same time."""
    with ThreadPoolExecutor(len(actions)) as pool:
        futures = [pool.submit(action) for action in actions]
        return [future.exception() or future.result() for future in futures]


def assert_serves(local: LocalCommittee, programs: Programs) -> None:
    """The committee can run the next audit."""
    with local.session(seconds=30) as committee:
        opened = committee.run_plain(programs.short, {"x": X, "y": Y})
    assert np.array_equal(opened["result"], POWERS)
