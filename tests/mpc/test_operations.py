"""Each operation inside MPC against float64, within the error that docs/MPC.md states."""

import numpy as np
import pytest

from opfl_chain.bench.operation_errors import QUANTUM, operations
from opfl_chain.learning.operations.nonlinear import inverse_root
from opfl_chain.learning.operations.table import Operations
from opfl_chain.mpc.local import MemoryCommittee
from opfl_chain.mpc.replay.compiler import compile_program
from opfl_chain.mpc.replay.programs import Program, secret
from opfl_chain.mpc.session.executable import MpcOptions


@pytest.fixture(scope="module")
def committee():
    with MemoryCommittee() as committee:
        yield committee


@pytest.mark.parametrize("operation", operations(), ids=lambda operation: operation.name)
def test_error_is_within_its_bound(committee, operation):
    assert operation.error_quanta(committee) <= operation.bound_quanta


@pytest.mark.parametrize(("smallest", "largest"), [(1, 2), (1, 256), (2**-10, 2**-4)])
def test_inverse_root_converges_over_its_range(smallest, largest):
    x = np.geomspace(smallest, largest, 1000)
    assert np.abs(inverse_root(x, smallest, largest) * np.sqrt(x) - 1).max() < 2**-19


def test_relu_takes_one_comparison_with_its_gradient(committee):
    """The mask of the forward pass is used again."""
    import jax

    x = np.random.default_rng(0).normal(0, 1, 50).astype(np.float32)

    def function(given):
        value, pull_back = jax.vjp(lambda v: Operations("mpc").relu(v, name=""), given["x"])
        return {"result": pull_back(value)[0]}

    profiled = MpcOptions(runtime={"enable_pphlo_profile": True})
    executable = compile_program(Program("relu", function, (secret("x", x.shape),)), profiled)
    assert executable.to_bytes().count(b"pphlo.less") == 1
    result = committee.run_plain(executable, {"x": x})["result"]
    assert np.abs(result - np.maximum(x, 0)).max() <= QUANTUM
