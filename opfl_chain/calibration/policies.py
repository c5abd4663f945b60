"""The policy to calibrate for: a file's, or the default of a model and a rule."""

from __future__ import annotations

from pathlib import Path

from opfl_chain.calibration.errors import PlanInvalid
from opfl_chain.calibration.run import rule_of
from opfl_chain.models.lenet import LENET_61706
from opfl_chain.models.registry import model_named
from opfl_chain.mpc.default_policy import default_policy
from opfl_chain.protocol.policy import Policy


def policy_for(model: str | None, rule: str | None, file: Path | None) -> Policy:
    """Refuses a file that is of another model or rule than those that are named."""
    if file is None:
        chosen = model_named(model or LENET_61706.name)
        return default_policy(chosen, guided=rule != "paper")
    policy = Policy.from_json(file.read_bytes())
    model_named(policy.model.name)
    for name, wanted, found in (
        ("model", model, policy.model.name),
        ("rule", rule, rule_of(policy)),
    ):
        if wanted not in (None, found):
            raise PlanInvalid(f"{file} is a policy of {name} {found}, not of {wanted} (--{name})")
    return policy
