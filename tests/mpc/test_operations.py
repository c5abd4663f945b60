"""Each operation inside MPC against float64, within the error that docs/MPC.md states."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import enable_x64

from opfl_chain.models.float_operations import FloatOperations
from opfl_chain.mpc.compiler import compile_program
from opfl_chain.mpc.memory_committee import MemoryCommittee
from opfl_chain.mpc.operations import MpcOperations, exponential, reciprocal, softmax
from opfl_chain.mpc.options import MpcOptions
from opfl_chain.mpc.program import Program, public, secret

OPTIONS = MpcOptions()
QUANTUM = 2.0**-22


@pytest.fixture(scope="module")
def committee():
    with MemoryCommittee() as committee:
        yield committee


def run(committee, function, arrays, public_names=()):
    inputs = tuple(
        (public if name in public_names else secret)(name, array.shape)
        for name, array in arrays.items()
    )
    program = Program(function.__name__, lambda given: {"result": function(given)}, inputs)
    outputs = committee.run_plain(compile_program(program, OPTIONS), arrays)
    return outputs["result"].astype(np.float64)


def random(*shape, scale=1.0):
    generator = np.random.default_rng(sum(shape))
    return generator.normal(0, scale, shape).astype(np.float32)


def test_relu_is_exact_to_the_quantum(committee):
    x = random(500)
    x[:3] = 0, QUANTUM, -QUANTUM
    result = run(committee, lambda given: MpcOperations().relu(given["x"], name=""), {"x": x})
    assert np.abs(result - np.maximum(x.astype(np.float64), 0)).max() <= QUANTUM


def test_average_pool_rounds_once(committee):
    x = random(2, 6, 8, 3)
    result = run(
        committee, lambda given: MpcOperations().average_pool(given["x"], name=""), {"x": x}
    )
    expected = x.astype(np.float64).reshape(2, 3, 2, 4, 2, 3).mean((2, 4))
    assert np.abs(result - expected).max() <= 4 * QUANTUM


@pytest.mark.parametrize("padding", [0, 2])
def test_convolution_as_a_matrix_product(committee, padding):
    arrays = {"x": random(2, 9, 8, 3), "weight": random(5, 5, 3, 4, scale=0.2), "bias": random(4)}

    def convolution(given):
        return MpcOperations().convolution(
            given["x"], given["weight"], given["bias"], padding=padding, name=""
        )

    with enable_x64():
        exact = {name: jnp.asarray(array, jnp.float64) for name, array in arrays.items()}
        expected = FloatOperations().convolution(
            exact["x"], exact["weight"], exact["bias"], padding=padding, name=""
        )
    result = run(committee, convolution, arrays, public_names=("weight", "bias"))
    assert np.abs(result - np.asarray(expected)).max() <= 100 * QUANTUM


@pytest.mark.parametrize("largest", [2, 10, 100])
def test_reciprocal_is_exact_to_four_quanta(committee, largest):
    x = np.linspace(1, largest, 400, dtype=np.float32)
    result = run(committee, lambda given: reciprocal(given["x"], largest), {"x": x})
    assert np.abs(result - 1 / x.astype(np.float64)).max() <= 4 * QUANTUM


def test_exponential_is_exact_to_four_quanta(committee):
    x = np.concatenate([np.linspace(-8, 0, 1000), np.linspace(-128, -8, 1000)]).astype(np.float32)
    result = run(committee, lambda given: exponential(given["x"]), {"x": x})
    assert np.abs(result - np.exp(x.astype(np.float64))).max() <= 4 * QUANTUM


def test_softmax_of_large_and_small_logits(committee):
    logits = np.concatenate([random(40, 10, scale=scale) for scale in (0.1, 1, 4)])
    result = run(committee, lambda given: softmax(given["x"]), {"x": logits})
    exponentials = np.exp(logits.astype(np.float64) - logits.max(1, keepdims=True))
    expected = exponentials / exponentials.sum(1, keepdims=True)
    assert np.abs(result - expected).max() <= 8 * QUANTUM
