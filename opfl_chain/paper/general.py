"""`general-attacks`: verifier-agnostic attacks on steps of a whole training run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from opfl_chain.adversaries.gradients.attack import (
    Attack,
    AttackedStep,
    AttackState,
    Images,
    Labels,
    Vector,
)
from opfl_chain.adversaries.gradients.registry import attack_named
from opfl_chain.lab.boundary.evaluated import spread
from opfl_chain.lab.calibration.steps import TrainedStep
from opfl_chain.learning.local_step import LocalStep
from opfl_chain.paper.instances import rejection_rate, success_rate
from opfl_chain.paper.lab_run import LabRun
from opfl_chain.paper.results import LabSettings
from opfl_chain.verifiers.verifier import Reference

ATTACKS = (
    *("reuse:2", "reuse:5", "reuse:10", "reverse:0.5", "reverse:1", "reverse:2", "label-flip"),
    *("amplify:5", "amplify:10", "free-rider:0.1", "backdoor:10"),
)
"""The paper's attacks, and two more."""

WARM_UP = 10
"""Rounds that build up an attack's state before an attacked one: the longest reuse."""


class Attempts:
    """One attack on its share of the steps, with effects and acceptances by verifier."""

    def __init__(self, attack: Attack, steps: Sequence[int], part: float, seed: int) -> None:
        self.attack = attack
        self.state = AttackState()
        cheating = [t for t in steps if attack.cheats_in(t)]
        count = min(max(round(part * len(steps)), 1), len(cheating))
        random = np.random.default_rng([seed, ATTACKS.index(attack.name)])
        self.attacked = {int(t) for t in random.choice(cheating, count, replace=False)}
        self.warm = {t - back for t in self.attacked for back in range(WARM_UP + 1)}
        self.effects: dict[str, list[bool]] = {}
        self.acceptances: dict[str, list[float]] = {}


def general_attacks(lab: LabRun, settings: LabSettings) -> dict[str, Any]:
    """Compute the rows of one run: each attack against each verifier, and honest rejections."""
    steps = spread(lab.held_out, settings.judged_steps)
    attempts = [
        Attempts(attack_named(name), steps, settings.attacked_part, settings.seed)
        for name in ATTACKS
    ]
    honest: dict[str, dict[int, float]] = {each.name: {} for each in lab.verifiers}
    for step, reference in _with_references(lab, steps):
        attacked = partial(_attacked_step, lab, step)
        for each in attempts:
            if step.t in each.warm:
                submitted = each.attack.submit(attacked(), each.state)
                if step.t in each.attacked and reference is not None:
                    _try(lab, each, submitted, reference)
        if reference is not None:
            for verifier in lab.verifiers:
                if verifier.can_judge(reference):
                    accepted = verifier.acceptance(reference.gradient, reference)
                    honest[verifier.name][step.t] = accepted
    return {
        **lab.descriptions,
        "judged_steps": len(steps),
        "first_step": steps[0],
        "last_step": steps[-1],
        "attacks": [
            {
                "attack": each.attack.name,
                "attacked_steps": len(each.attacked),
                "judged_by": {name: len(found) for name, found in each.effects.items()},
                "without_effect": each.effects.get("none", []).count(False),
                "asr": {
                    verifier.name: success_rate(
                        each.effects[verifier.name], each.acceptances[verifier.name]
                    )
                    if each.effects.get(verifier.name)
                    else None
                    for verifier in lab.verifiers
                },
                "frr": {
                    name: rejection_rate([a for t, a in found.items() if t not in each.attacked])
                    for name, found in honest.items()
                },
            }
            for each in attempts
        ],
        "honest": {name: rejection_rate(list(found.values())) for name, found in honest.items()},
    }


def _with_references(
    lab: LabRun, steps: Sequence[int]
) -> Iterator[tuple[TrainedStep, Reference | None]]:
    judged = set(steps)
    for step in lab.trained(steps[-1] + 1):
        reference = lab.reference(step.t) if step.t in judged else None
        if reference is not None and not np.array_equal(reference.gradient, step.result.gradient):
            raise lab.other_run(step.t)
        yield step, reference


def _try(lab: LabRun, attempts: Attempts, submitted: Vector, reference: Reference) -> None:
    ours, honest = (
        lab.policy.fixed_point.encode_array("gradient", each)
        for each in (submitted, reference.gradient)
    )
    effect = not np.array_equal(ours, honest)
    for verifier in lab.verifiers:
        if verifier.can_judge(reference):
            accepted = verifier.acceptance(submitted, reference)
            attempts.effects.setdefault(verifier.name, []).append(effect)
            attempts.acceptances.setdefault(verifier.name, []).append(accepted)


def _attacked_step(lab: LabRun, step: TrainedStep) -> AttackedStep:
    return AttackedStep(
        step.t,
        lab.policy,
        step.weights,
        step.examples,
        step.labels,
        step.result.gradient,
        step.result.logits,
        gradient_function(lab.local_step, lab, step.weights),
    )


def gradient_function(
    local: LocalStep, lab: LabRun, weights: Vector
) -> Callable[[Images, Labels], Vector]:
    parameters = lab.model.layout.unflatten(weights)
    return lambda examples, labels: local.run(parameters, examples, labels).gradient
