"""Whether an honest client is accepted wherever it trained.

A plain replay knows nothing of the client, so the recorded one is compared with what any
environment commits to. A guided one follows the client's advice. Where an environment's masks and
lift are those of the record, the recorded replay is what MPC would give; its ceilings differ by
rounding, which is counted as deviation from the advice in full. Where they are not, the step needs
another replay, and some of these are made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from opfl_chain.calibration.boundaries import Observation
from opfl_chain.calibration.replayer import Replayed
from opfl_chain.calibration.steps import HonestStep
from opfl_chain.evaluation.environments import environments_of
from opfl_chain.evaluation.evaluated import Evaluated, spread
from opfl_chain.evaluation.perturbations import length
from opfl_chain.evaluation.profiles import Profile, profile_of
from opfl_chain.evaluation.rates import Rate
from opfl_chain.evaluation.records import GUIDED
from opfl_chain.protocol.advice import Advice, advise
from opfl_chain.protocol.policy import Policy

ReplayAll = Callable[[Policy, Sequence[HonestStep]], Sequence[Replayed]]
"""Replays steps in MPC."""


@dataclass
class Found:
    """What one environment gave."""

    apart: list[float] = field(default_factory=list)
    """How far its gradients are from the recorded ones, relative to their norm."""
    profiles: list[Profile] = field(default_factory=list)
    to_replay: list[HonestStep] = field(default_factory=list)


def environment_rows(evaluated: Evaluated, replay_all: ReplayAll) -> list[dict[str, Any]]:
    """Rejections of honest steps that were taken in each environment."""
    records, extent = evaluated.records, evaluated.extent
    environments = environments_of(records.policy)
    found = {name: Found() for name in environments}
    steps = evaluated.sample(extent.environment_steps)
    for done, t in enumerate(steps, 1):
        step, replayed = records.step(t), records.store.load_replay(records.rule, t)
        for name, run in environments.items():
            _compare(found[name], evaluated, step, replayed, replace(step, **vars(run(step))))
        records.progress(f"training {records.run} elsewhere, {records.rule}", done, len(steps))
    return [_row(evaluated, name, each, replay_all) for name, each in found.items()]


def _compare(
    found: Found, evaluated: Evaluated, step: HonestStep, replayed: Replayed, there: HonestStep
) -> None:
    difference = there.gradient.astype(np.float64) - step.gradient
    norm = length(step.gradient.astype(np.float64))
    found.apart.append(float(np.linalg.norm(difference)) / norm)
    policy = evaluated.records.policy
    if evaluated.records.rule == GUIDED:
        known, told = _advice(policy, step), _advice(policy, there)
        if told.lift != known.lift or (told.masks != known.masks).any():
            found.to_replay.append(there)
            return
        quanta = float(1 << policy.fraction_bits)
        moved = int(np.ceil(np.abs(told.ceilings - known.ceilings).max() * quanta))
        replayed = replace(replayed, over_ceiling=replayed.over_ceiling + moved)
    found.profiles.append(profile_of(Observation.of(policy, there.gradient, replayed)))


def _row(evaluated: Evaluated, name: str, found: Found, replay_all: ReplayAll) -> dict[str, Any]:
    policy, boundary = evaluated.records.policy, evaluated.boundary
    chosen = spread(found.to_replay, evaluated.extent.replays_per_environment)
    again = [
        profile_of(Observation.of(policy, step.gradient, replayed))
        for step, replayed in zip(chosen, replay_all(policy, chosen), strict=True)
    ]
    return {
        **evaluated.names,
        "environment": name,
        "steps": len(found.apart),
        "same_gradient_steps": sum(each == 0 for each in found.apart),
        "relative_difference_median": float(np.median(found.apart)),
        "relative_difference_max": max(found.apart),
        "needs_another_replay": len(found.to_replay),
        **{f"recorded_replay_{k}": v for k, v in Rate.of(boundary, found.profiles).report.items()},
        **{f"another_replay_{k}": v for k, v in Rate.of(boundary, again).report.items()},
    }


def _advice(policy: Policy, step: HonestStep) -> Advice:
    return advise(step.pre_activations > 0, step.logits, step.labels, policy.largest_lift)
