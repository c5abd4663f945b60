"""Shared helpers of the session tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from opfl_chain.mpc.audit.judge import exchange_findings
from opfl_chain.mpc.local import LocalCommittee
from opfl_chain.mpc.replay.compiler import compile_program
from opfl_chain.mpc.replay.programs import Program, public, secret
from opfl_chain.mpc.session.errors import CopiesDiffer, ShareInvalid
from opfl_chain.mpc.session.executable import Executable, MpcOptions
from opfl_chain.mpc.session.party import Party
from opfl_chain.mpc.session.ranks import MEMBERS
from opfl_chain.mpc.session.session import RunResult, Session
from opfl_chain.mpc.session.shares import Share, Words, combine, decode, split

OPTIONS = MpcOptions()
BITS = OPTIONS.fraction_bits
PATIENCE_SECONDS = 300.0
"""Limit of all that should succeed, however busy the machine is."""
RUNNING_SECONDS = 1.0
"""Time between a meeting and the middle of the long program."""
X, Y = np.arange(4) - 1, np.arange(4) + 2
POWERS = X * Y**3
"""The result of the short program."""


def power(steps: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def function(arrays: dict[str, Any]) -> dict[str, Any]:
        x, y = arrays["x"], arrays["y"]
        return {"result": jax.lax.fori_loop(0, steps, lambda _, value: value * y, x)}

    return function


def mixed(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return outputs of every kind of storage."""
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
    """A program that multiplies until it is ended."""
    mixed: Executable


def compile_programs() -> Programs:
    pair = (secret("x", (4,), "int64"), secret("y", (4,), "int64"))
    three = (secret("a", (4,), "int64"), secret("b", (4,), "int64"), public("w", (4,)))
    return Programs(
        compile_program(Program("short", power(3), pair), OPTIONS),
        compile_program(Program("short", power(4), pair), OPTIONS),
        compile_program(Program("long", power(10_000_000), pair), OPTIONS),
        compile_program(Program("mixed", mixed, three), OPTIONS),
    )


SHARES = {"x": split(X, BITS), "y": split(Y, BITS)}


def inputs_of(rank: int) -> dict[str, Share]:
    return {name: shares[rank] for name, shares in SHARES.items()}


def run_in_session(
    party: Party,
    executable: Executable,
    audit: str,
    begun: Callable[[Party], None] = lambda party: None,
    **limits: float,
) -> Callable[[], RunResult]:
    def action() -> RunResult:
        with party.session(audit, **{"seconds": PATIENCE_SECONDS, **limits}) as session:
            begun(party)
            return session.run(executable, inputs_of(party.rank))

    return action


class AllBegun:
    """Calls `then` a moment after all three parties have met, when their run is under way."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then
        self._met = threading.Semaphore(MEMBERS - 1)

    def __call__(self, party: Party) -> None:
        if not self._met.acquire(blocking=False):
            threading.Timer(RUNNING_SECONDS, self._then).start()


def outcomes(actions: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run actions in parallel; return what each returned or raised."""
    with ThreadPoolExecutor(len(actions)) as pool:
        futures = [pool.submit(action) for action in actions]
        return [future.exception() or future.result() for future in futures]


def assert_serves(local: LocalCommittee, programs: Programs) -> None:
    """Assert that the committee can run the next audit."""
    with local.session(seconds=PATIENCE_SECONDS) as committee:
        opened = committee.run_plain(programs.short, {"x": X, "y": Y})
    assert np.array_equal(opened["result"], POWERS)


def round_trips(session: Session, count: int, size: int) -> list[float]:
    """Return the seconds of each of `count` exchanges of `size` bytes with both peers."""
    seconds = []
    for _ in range(count):
        started = time.perf_counter()
        session.call(exchange_findings, subject=bytes(size), plugins={}, findings=[])
        seconds.append(time.perf_counter() - started)
    return seconds


def reconstruct(shares: Sequence[Share], fraction_bits: int) -> Words:
    """Return the array from all three shares, in order of rank."""
    kinds = {(share.dtype, share.shape, share.storage) for share in shares}
    if [share.rank for share in shares] != list(range(MEMBERS)) or len(kinds) != 1:
        raise ShareInvalid("need the shares of members 0, 1 and 2 of one array, in this order")
    if shares[0].storage.is_public:
        return decode(shares[0].words, shares[0].dtype, fraction_bits)
    for component in range(MEMBERS):
        holder, other = component, (component - 1) % MEMBERS
        if not np.array_equal(shares[holder].components[0], shares[other].components[1]):
            raise CopiesDiffer(component, (holder, other))
    words = combine(shares[0], shares[2].components[0])
    return decode(words, shares[0].dtype, fraction_bits)
