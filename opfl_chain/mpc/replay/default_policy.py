"""Default policies of models, with the options of the measurements."""

from __future__ import annotations

from typing import Any

from opfl_chain.learning.model import Model
from opfl_chain.learning.optimizers import OPTIMIZERS
from opfl_chain.learning.registry import model_named
from opfl_chain.mpc.session.executable import SPU_VERSION
from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.randomness import audit_rate_of
from opfl_chain.rules.registry import DEFAULT_RULE, plugins_used, rule_named
from opfl_chain.rules.rule import AnyRule

FRACTION_BITS = 22
REPLAY_SCALE = 64
LARGEST_LIFT = 22
MEAN, STD = 0.1307, 0.3081
"""Mean and deviation of MNIST's pixels, also used for similar images."""

REPLAYS: dict[str, dict[str, Any]] = {
    "plain": {"kind": "plain"},
    "guided": {"kind": "guided", "largest_lift": LARGEST_LIFT},
    "proved": {
        "kind": "proved",
        "largest_lift": LARGEST_LIFT,
        "value_bits": 28,
        "error_bits": 38,
        "word_bits": 58,
        "range_bits": 9,
        "projections": 128,
    },
}
"""The settings of each kind of replay."""

OPTIMIZER: dict[str, Any] = {"name": "sgd", "learning_rate": 0.002, "momentum": 0.9}


def default_policy(
    model: Model | str,
    *,
    rule: AnyRule | str = DEFAULT_RULE,
    optimizer: dict[str, Any] | None = None,
    batch_size: int = 1,
    audit_rate: float = 0.3,
    scheme: Scheme = Scheme.SHARES,
    seed: int = 0,
) -> Policy:
    """Return a policy for training an image model whose replays this rule judges.

    Model and rule may be given by name. The policy names the plug-ins among them.
    """
    model = model_named(model) if isinstance(model, str) else model
    rule = rule_named(rule) if isinstance(rule, str) else rule
    optimizer = optimizer or OPTIMIZER
    if OPTIMIZERS.plugin(optimizer["name"]):
        optimizer = {"options": {}, **optimizer}  # policies tell a plug-in by this field
    replay = {**REPLAYS[rule.replay], **rule.replay_options(batch_size)}
    return Policy.from_mapping(
        {
            "model": {"name": model.name, "parameters": dict(model.options)},
            "optimizer": optimizer,
            "data": {
                "input_shape": model.input_shape,
                "classes": model.classes,
                "mean": [MEAN],
                "std": [STD],
                "batch_size": batch_size,
            },
            "seeds": {"model": seed, "data": seed},
            "fraction_bits": FRACTION_BITS,
            "loss_scale": REPLAY_SCALE << replay.get("largest_lift", 0),
            "audit_rate": str(audit_rate_of(audit_rate)),
            "commitment_scheme": scheme.value,
            "quantile_grid": rule.grid,
            "replay": replay,
            "spu": {
                "version": SPU_VERSION,
                "exp_mode": "EXP_PADE",
                "compiler_options": {"disable_deallocation_insertion": True},
            },
            "plugins": plugins_used(model, optimizer["name"], rule.name),
        }
    )
