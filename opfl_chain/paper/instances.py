"""Instances of adaptive attacks, and the rates of their success and of honest rejections."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from opfl_chain.adversaries.pgd import Victims
from opfl_chain.lab.boundary.evaluated import spread
from opfl_chain.lab.calibration.steps import TrainedStep
from opfl_chain.lab.errors import TooFewInstances
from opfl_chain.lab.statistics import upper_bound
from opfl_chain.paper.lab_run import LabRun
from opfl_chain.protocol.policy import Sgd
from opfl_chain.verifiers.verifier import Reference, Verifier

BEGINNING, WHOLE_RUN = "beginning", "whole run"
"""The first steps after calibration, or steps of all stages. The paper does not specify it."""


def success_rate(effects: Sequence[bool], acceptances: Sequence[float]) -> float:
    """ASR: the mean over all attempts of effect times probability of acceptance.

    An attempt without an effect, or never accepted, counts as a failure and stays in the
    denominator.
    """
    if len(effects) != len(acceptances) or not effects:
        raise ValueError(f"no rate from {len(effects)} effects and {len(acceptances)} acceptances")
    return float(np.mean(np.array(effects, float) * np.array(acceptances, float)))


def best_candidates(
    effects: NDArray[np.bool_], acceptances: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the row of the best candidate for each instance (column)."""
    return np.asarray((effects * acceptances).argmax(0))


def rejection_rate(acceptances: Sequence[float]) -> dict[str, float | int]:
    """FRR: the expected part of honest steps that is rejected."""
    steps = len(acceptances)
    rejected = float(steps - np.sum(acceptances))
    return {
        "honest_steps": steps,
        "rejected": rejected,
        "frr": rejected / steps if steps else 0.0,
        "frr_upper95": upper_bound(round(rejected), steps) if steps else 1.0,
    }


@dataclass(frozen=True, eq=False)
class Instances:
    rows: Sequence[int]
    """Row numbers among all chosen instances."""
    steps: Sequence[int]
    victims: Victims
    references: Sequence[Reference]

    @property
    def digest(self) -> str:
        """Digest of the chosen steps, so that results of two choices are never mixed."""
        return hashlib.sha256(repr(list(self.steps)).encode()).hexdigest()[:12]

    def judged_by(self, verifier: Verifier) -> Instances:
        """Select instances that a verifier can judge: a rule for comparison may lack replays."""
        return self._take([p for p, each in enumerate(self.references) if verifier.can_judge(each)])

    def at_rate(self, factor: float) -> Instances:
        """Scale the learning rate, and keep instances whose honest update predicts correctly.

        The contribution of momentum to the update stays unchanged.
        """
        faster = replace(self, victims=replace(self.victims, rate=factor * self.victims.rate))
        flipped = faster.victims.flipped(faster.victims.gradients)
        return faster._take([place for place, wrong in enumerate(flipped.tolist()) if not wrong])

    def _take(self, places: Sequence[int]) -> Instances:
        return Instances(
            [self.rows[place] for place in places],
            [self.steps[place] for place in places],
            self.victims.take(places),
            [self.references[place] for place in places],
        )


def instances_of(lab: LabRun, stages: Sequence[str], count: int) -> dict[str, Instances]:
    """Train again and choose `count` instances for each stage."""
    rules = lab.policy.optimizer
    assert isinstance(rules, Sgd)  # the update is linear in the gradient
    candidates = set(lab.held_out)
    right: dict[int, TrainedStep] = {}
    for step in lab.trained(max(candidates) + 1):
        if step.t in candidates and _predicts_rightly(lab, step, rules):
            right[step.t] = step
        if len(right) == count and list(stages) == [BEGINNING]:
            break
    if not right:
        raise TooFewInstances(str(lab.run))
    found = {}
    for stage in stages:
        steps = list(right)
        chosen = steps[:count] if stage == BEGINNING else spread(steps, count)
        victims = _victims(lab, [right[t] for t in chosen], rules)
        found[stage] = Instances(
            range(len(chosen)), chosen, victims, [lab.reference(t) for t in chosen]
        )
    return found


def _predicts_rightly(lab: LabRun, step: TrainedStep, rules: Sgd) -> bool:
    victim = _victims(lab, [step], rules)
    return not bool(victim.flipped(victim.gradients)[0])


def _victims(lab: LabRun, steps: Sequence[TrainedStep], rules: Sgd) -> Victims:
    rate, momentum = np.float32(rules.learning_rate), np.float32(rules.momentum)
    resting = [step.weights - rate * (momentum * step.state.averages[0]) for step in steps]
    return Victims(
        lab.model,
        torch.from_numpy(np.stack(resting)),
        float(rate),
        torch.from_numpy(np.stack([step.result.gradient for step in steps])),
        torch.from_numpy(np.concatenate([step.examples for step in steps])),
        torch.from_numpy(np.concatenate([step.labels for step in steps])),
    )
