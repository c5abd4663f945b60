"""Errors of the operations of replays against float64, in quanta.

Tests check each bound, and `opfl bench operations` measures the actual errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from opfl_chain.learning.operations.nonlinear import exponential, inverse_root, reciprocal
from opfl_chain.learning.operations.table import Operations
from opfl_chain.mpc.local import Committee
from opfl_chain.mpc.replay.compiler import compile_program
from opfl_chain.mpc.replay.programs import Program, lifted_difference, public, secret
from opfl_chain.mpc.session.executable import MpcOptions

OPTIONS = MpcOptions()
QUANTUM = 2.0**-OPTIONS.fraction_bits

Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class MeasuredOperation:
    """An operation inside MPC, its expected result, and the bound on its error."""

    name: str
    how: str
    bound_quanta: int
    compute: Callable[[Arrays], Any]
    expected: Callable[[Arrays], Any]
    inputs: Mapping[str, NDArray[Any]]
    public_names: tuple[str, ...] = ()

    def error_quanta(self, committee: Committee) -> float:
        """Run the operation once with a committee; return the largest error."""
        declared = tuple(
            (public if name in self.public_names else secret)(name, array.shape, str(array.dtype))
            for name, array in self.inputs.items()
        )
        program = Program(self.name, lambda given: {"result": self.compute(given)}, declared)
        executable = compile_program(program, OPTIONS)
        result = committee.run_plain(executable, self.inputs)["result"].astype(np.float64)
        with jax.experimental.enable_x64():
            exact = {name: array.astype(np.float64) for name, array in self.inputs.items()}
            expected = np.asarray(self.expected(exact))
        return float(np.abs(result - expected).max() / QUANTUM)


def operations() -> Iterator[MeasuredOperation]:
    """Yield all operations."""
    ours, plain = Operations("mpc"), Operations("jax")
    values = _random(500)
    values[:3] = 0, QUANTUM, -QUANTUM
    yield MeasuredOperation(
        "ReLU",
        "one comparison, its mask reused by the gradient",
        1,
        lambda given: ours.relu(given["x"], name=""),
        lambda given: np.maximum(given["x"], 0),
        {"x": values},
    )
    yield MeasuredOperation(
        "average pool",
        "sum, one product with a public quarter",
        4,
        lambda given: ours.average_pool(given["x"], name=""),
        lambda given: plain.average_pool(jnp.asarray(given["x"]), name=""),
        {"x": _random(2, 6, 4, 3)},
    )
    yield MeasuredOperation(
        "convolution",
        "a matrix product over unfolded windows, of 75 products here",
        32,
        lambda given: ours.convolution(*_three(given), padding=2, name=""),
        lambda given: plain.convolution(*_three(given), padding=2, name=""),
        {
            "x": _random(2, 9, 8, 3),
            "weight": _random(5, 5, 3, 4, scale=0.2),
            "bias": _random(4),
        },
        ("weight", "bias"),
    )
    yield from _of_one_variable()
    yield from _of_softmax()


def _of_one_variable() -> Iterator[MeasuredOperation]:
    near, far = np.linspace(-8, 0, 1000), np.linspace(-128, -8, 1000)
    yield MeasuredOperation(
        "exponential of [-128, 0]",
        "64th power of a polynomial, squared as 64 * (p - 1)",
        4,
        lambda given: exponential(given["x"]),
        lambda given: np.exp(given["x"]),
        {"x": np.concatenate([near, far]).astype(np.float32)},
    )
    for largest in (2, 10, 100):
        yield MeasuredOperation(
            f"reciprocal of [1, {largest}]",
            "Newton's iteration from the best straight line",
            4,
            lambda given, largest=largest: reciprocal(given["x"], largest),  # type: ignore[misc]
            lambda given: 1 / given["x"],
            {"x": np.linspace(1, largest, 400, dtype=np.float32)},
        )
    yield MeasuredOperation(
        "inverse square root of [1/16, 16]",
        "Newton's iteration from the best straight line",
        160,
        lambda given: inverse_root(given["x"], 1 / 16, 16),
        lambda given: given["x"] ** -0.5,
        {"x": np.geomspace(1 / 16, 16, 800).astype(np.float32)},
    )


def _of_softmax() -> Iterator[MeasuredOperation]:
    logits = np.concatenate([_random(40, 10, scale=scale) for scale in (0.1, 1, 4)])
    yield MeasuredOperation(
        "softmax of 10",
        "largest logit subtracted, exponential, reciprocal over [1, 10]",
        8,
        lambda given: Operations("mpc").softmax(given["x"], name=""),
        lambda given: _softmax(given["x"]),
        {"x": logits},
    )
    targets = np.eye(10, dtype=np.float32)[logits.argmax(1)]
    lead = np.sort(logits, 1)
    lift = int(np.floor((lead[:, -1] - lead[:, -2]).min() / np.log(2)))
    yield MeasuredOperation(
        "lifted softmax minus target",
        "along ceilings and a lift that the client advises",
        24,
        lambda given: lifted_difference(
            given["x"], given["targets"], given["ceilings"], given["lifts"]
        )[0],
        lambda given: (_softmax(given["x"]) - given["targets"]) * 2.0**lift,
        {
            "x": logits,
            "targets": targets,
            "ceilings": logits.max(1),
            "lifts": np.eye(24, dtype=np.int32)[lift],
        },
    )


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    exponentials = np.exp(logits - logits.max(1, keepdims=True))
    softmaxed: NDArray[np.float64] = exponentials / exponentials.sum(1, keepdims=True)
    return softmaxed


def _three(given: Arrays) -> tuple[Any, Any, Any]:
    return given["x"], given["weight"], given["bias"]


def _random(*shape: int, scale: float = 1.0) -> NDArray[np.float32]:
    generator = np.random.default_rng(sum(shape))
    return generator.normal(0, scale, shape).astype(np.float32)


def measured_errors(
    committee: Committee, repeats: int
) -> Iterator[tuple[MeasuredOperation, float]]:
    """Yield each operation with its largest error of several runs: truncation is random."""
    for operation in operations():
        yield operation, max(operation.error_quanta(committee) for _ in range(repeats))
