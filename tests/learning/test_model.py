"""The shapes of ReLUs, counted without computing anything."""

import subprocess
import sys

import jax
import numpy as np
import pytest

from opfl_chain.learning.model import relu_shapes
from opfl_chain.learning.operations.table import Operations, Recording
from opfl_chain.learning.registry import MODELS, model_named


@pytest.mark.parametrize("model", map(model_named, MODELS), ids=lambda model: model.name)
def test_shapes_are_those_of_the_jax_form(model):
    recorder = Recording(Operations("jax"))
    jax.eval_shape(
        lambda parameters, examples: model.logits(parameters, examples, recorder),
        {each.name: np.empty(each.shape, np.float32) for each in model.layout},
        np.empty((3, *model.input_shape), np.float32),
    )
    seen = {name: tuple(values.shape) for name, values in recorder.pre_activations.items()}
    found = relu_shapes(model, batch=3)
    assert found == seen
    assert list(found) == list(seen)


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("roles.client.client", "jax"),
        ("roles.member.member", "torch"),
        ("mpc.audit.judge", "jax"),
        ("roles.client.client", "opfl_chain.adversaries"),
        ("roles.member.member", "opfl_chain.adversaries"),
        ("roles.server.server", "opfl_chain.adversaries"),
        ("adversaries.members", "torch"),
        ("adversaries.clients", "torch"),
        ("adversaries.gradients.registry", "opfl_chain.roles.node"),
        ("jobs.demo.demo", "torch"),
        ("roles.node", "web3"),
        ("cli", "numpy"),
    ],
)
def test_processes_do_without_what_they_do_not_need(module, unwanted):
    """A job has a dozen processes, and each pays for the import."""
    code = f"import sys, opfl_chain.{module}; sys.exit({unwanted!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
