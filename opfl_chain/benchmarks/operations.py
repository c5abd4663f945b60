"""The error of every operation that replays are made of, against float64, in quanta.

Tests hold each to its bound, and `opfl bench operations` measures how far below it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from opfl_chain.models.float_operations import FloatOperations
from opfl_chain.mpc.committee import Committee
from opfl_chain.mpc.compiler import compile_program
from opfl_chain.mpc.guided_replay import lifted_difference
from opfl_chain.mpc.operations import (
    MpcOperations,
    exponential,
    inverse_root,
    reciprocal,
    softmax,
)
from opfl_chain.mpc.options import MpcOptions
from opfl_chain.mpc.program import Program, public, secret

OPTIONS = MpcOptions()
QUANTUM = 2.0**-OPTIONS.fraction_bits

Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Operation:
    """What is computed inside MPC, what it should be, and how far off it may be."""

    name: str
    how: str
    bound_quanta: int
    compute: Callable[[Arrays], Any]
    expected: Callable[[Arrays], Any]
    inputs: Mapping[str, NDArray[Any]]
    public_names: tuple[str, ...] = ()

    def error_quanta(self, committee: Committee) -> float:
        """Compute it once with a committee; return the largest error."""
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


def operations() -> Iterator[Operation]:
    """All of them."""
    ours, plain = MpcOperations(), FloatOperations()
    values = _random(500)
    values[:3] = 0, QUANTUM, -QUANTUM
    yield Operation(
        "ReLU",
        "one comparison, its mask reused by the gradient",
        1,
        lambda given: ours.relu(given["x"], name=""),
        lambda given: np.maximum(given["x"], 0),
        {"x": values},
    )
    yield Operation(
        "average pool",
        "sum, one product with a public quarter",
        4,
        lambda given: ours.average_pool(given["x"], name=""),
        lambda given: plain.average_pool(jnp.asarray(given["x"]), name=""),
        {"x": _random(2, 6, 4, 3)},
    )
    yield Operation(
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


def _of_one_variable() -> Iterator[Operation]:
    near, far = np.linspace(-8, 0, 1000), np.linspace(-128, -8, 1000)
    yield Operation(
        "exponential of [-128, 0]",
        "64th power of a polynomial, squared as 64 * (p - 1)",
        4,
        lambda given: exponential(given["x"]),
        lambda given: np.exp(given["x"]),
        {"x": np.concatenate([near, far]).astype(np.float32)},
    )
    for largest in (2, 10, 100):
        yield Operation(
            f"reciprocal of [1, {largest}]",
            "Newton's iteration from the best straight line",
            4,
            lambda given, largest=largest: reciprocal(given["x"], largest),  # type: ignore[misc]
            lambda given: 1 / given["x"],
            {"x": np.linspace(1, largest, 400, dtype=np.float32)},
        )
    yield Operation(
        "inverse square root of [1/16, 16]",
        "Newton's iteration from the best straight line",
        160,
        lambda given: inverse_root(given["x"], 1 / 16, 16),
        lambda given: given["x"] ** -0.5,
        {"x": np.geomspace(1 / 16, 16, 800).astype(np.float32)},
    )


def _of_softmax() -> Iterator[Operation]:
    logits = np.concatenate([_random(40, 10, scale=scale) for scale in (0.1, 1, 4)])
    yield Operation(
        "softmax of 10",
        "largest logit subtracted, exponential, reciprocal over [1, 10]",
        8,
        lambda given: softmax(given["x"]),
        lambda given: _softmax(given["x"]),
        {"x": logits},
    )
    targets = np.eye(10, dtype=np.float32)[logits.argmax(1)]
    lead = np.sort(logits, 1)
    lift = int(np.floor((lead[:, -1] - lead[:, -2]).min() / np.log(2)))
    yield Operation(
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


def measured_errors(committee: Committee, repeats: int) -> Iterator[tuple[Operation, float]]:
    """Each operation with its largest error of several runs: truncation is random."""
    for operation in operations():
        yield operation, max(operation.error_quanta(committee) for _ in range(repeats))
