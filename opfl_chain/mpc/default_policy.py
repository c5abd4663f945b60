"""Policies for the models of this package, with the options that it was measured with."""

from __future__ import annotations

from typing import Any

from opfl_chain.models.model import Model
from opfl_chain.mpc.options import SPU_VERSION
from opfl_chain.protocol.gradient import Scheme
from opfl_chain.protocol.guided import GUIDED_GRID
from opfl_chain.protocol.policy import PAPER_GRID, Policy
from opfl_chain.protocol.sampling import audit_rate_of

FRACTION_BITS = 22
REPLAY_SCALE = 64
LARGEST_LIFT = 22
MEAN, STD = 0.1307, 0.3081
"""Of MNIST's pixels; other images of the kind are normalised by the same numbers."""

OPTIMIZER = {"name": "sgd", "learning_rate": 0.002, "momentum": 0.9}


def default_policy(
    model: Model,
    *,
    guided: bool = True,
    optimizer: dict[str, Any] | None = None,
    batch_size: int = 1,
    audit_rate: float = 0.3,
    scheme: Scheme = Scheme.SHARES,
    seed: int = 0,
) -> Policy:
    """Return a policy to train a model of images with."""
    lift = LARGEST_LIFT if guided else 0
    return Policy.from_mapping(
        {
            "model": {"name": model.name},
            "optimizer": optimizer or OPTIMIZER,
            "data": {
                "input_shape": model.input_shape,
                "classes": model.classes,
                "mean": [MEAN],
                "std": [STD],
                "batch_size": batch_size,
            },
            "seeds": {"model": seed, "data": seed},
            "fraction_bits": FRACTION_BITS,
            "loss_scale": REPLAY_SCALE << lift,
            "audit_rate": str(audit_rate_of(audit_rate)),
            "commitment_scheme": scheme.value,
            "quantile_grid": GUIDED_GRID if guided else PAPER_GRID,
            "replay": {"kind": "guided", "largest_lift": lift} if guided else {"kind": "plain"},
            "spu": {
                "version": SPU_VERSION,
                "exp_mode": "EXP_PADE",
                "compiler_options": {"disable_deallocation_insertion": True},
            },
        }
    )
