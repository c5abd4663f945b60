"""The shapes of ReLUs, counted without computing anything."""

import subprocess
import sys

import jax
import numpy as np
import pytest

from opfl_chain.models.float_operations import FloatOperations
from opfl_chain.models.registry import MODELS
from opfl_chain.models.relus import relu_shapes


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_shapes_are_those_of_the_jax_form(model):
    seen = {}

    class Recorder(FloatOperations):
        def relu(self, values, *, name):
            seen[name] = tuple(values.shape)
            return super().relu(values, name=name)

    jax.eval_shape(
        lambda parameters, examples: model.logits(parameters, examples, Recorder()),
        {each.name: np.empty(each.shape, np.float32) for each in model.layout},
        np.empty((3, *model.input_shape), np.float32),
    )
    found = relu_shapes(model, batch=3)
    assert found == seen
    assert list(found) == list(seen)


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("nodes.client", "jax"),
        ("nodes.member", "torch"),
        ("nodes.misconduct", "torch"),
        ("demo.demo", "torch"),
        ("nodes.node", "web3"),
        ("cli", "numpy"),
    ],
)
def test_processes_do_without_what_they_do_not_need(module, unwanted):
    """A job has a dozen processes: each import is paid a dozen times."""
    code = f"import sys, opfl_chain.{module}; sys.exit({unwanted!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
