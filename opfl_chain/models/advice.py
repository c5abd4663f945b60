"""The form of advice under a policy, which follows from the model's ReLUs."""

from __future__ import annotations

from opfl_chain.models.registry import model_named
from opfl_chain.models.relus import relu_units
from opfl_chain.protocol.advice import AdviceFormat
from opfl_chain.protocol.policy import GuidedReplay, Policy


def advice_format_of(policy: Policy) -> AdviceFormat | None:
    """What advice clients give, if the replay is guided."""
    if not isinstance(policy.replay, GuidedReplay):
        return None
    batch = policy.data.batch_size
    return AdviceFormat(
        relu_units(model_named(policy.model.name), batch),
        policy.replay.largest_lift,
        batch,
        policy.fraction_bits,
    )
