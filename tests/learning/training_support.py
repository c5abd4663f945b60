"""A policy of a LeNet, and a short training run with it."""

from typing import Any

import numpy as np

from opfl_chain.learning.data.examples import Examples
from opfl_chain.learning.data.partition import ClientData
from opfl_chain.learning.local_step import LocalStep
from opfl_chain.learning.optimizers import ModelOptimizer
from opfl_chain.learning.seeded import initial_parameters
from opfl_chain.protocol.policy import Policy


def policy(*, batch_size: int = 1, **optimizer: Any) -> Policy:
    return Policy.from_mapping(
        {
            "model": {"name": "lenet-61706"},
            "optimizer": {"name": "sgd", "learning_rate": 0.01, "momentum": 0.9, **optimizer},
            "data": {
                "input_shape": [28, 28, 1],
                "classes": 10,
                "mean": [0.1307],
                "std": [0.3081],
                "batch_size": batch_size,
            },
            "seeds": {"model": 0, "data": 1},
            "fraction_bits": 22,
            "loss_scale": 64,
            "audit_rate": 2**62,
            "commitment_scheme": "shares",
            "spu": {"version": "0.9.5", "exp_mode": "EXP_PADE"},
        }
    )


def trained(rules: Policy, examples: Examples, steps: int) -> dict[str, np.ndarray]:
    step, optimizer = LocalStep.of_policy(rules), ModelOptimizer.of_policy(rules)
    layout = optimizer.layout
    data = ClientData(rules, examples, client=0)
    weights = layout.flatten(initial_parameters(layout, rules.seeds.model))
    state = optimizer.start(weights)
    for t in range(steps):
        gradient = step.run(layout.unflatten(weights), *data.batch(t)).gradient
        state, weights = optimizer.update(state, weights, gradient)
    return layout.unflatten(weights)
